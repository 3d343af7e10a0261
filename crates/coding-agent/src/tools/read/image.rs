//! Pictures, told by their first bytes and shown as they are.

use std::io::Read;

use agent::{ToolError, ToolOutput};
use ai::ContentBlock;
use data_encoding::BASE64;
use serde_json::json;

use crate::tools::regular_file;
use crate::workspace::ResolvedPath;

/// How large a picture may be, in bytes: its base64 stays below 5 MB, the least that the large
/// providers take.
const MAX_IMAGE_BYTES: u64 = 3_750_000;

/// The MIME type of a picture that providers take.
pub(super) fn format(start: &[u8]) -> Option<&'static str> {
    if start.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some("image/png")
    } else if start.starts_with(&[0xff, 0xd8, 0xff]) {
        Some("image/jpeg")
    } else if start.starts_with(b"GIF87a") || start.starts_with(b"GIF89a") {
        Some("image/gif")
    } else if start.starts_with(b"RIFF") && start.get(8..12) == Some(b"WEBP") {
        Some("image/webp")
    } else {
        None
    }
}

pub(super) fn show(
    path: &ResolvedPath,
    mime_type: &'static str,
    reader: impl Read,
    size: u64,
) -> Result<ToolOutput, ToolError> {
    let mut bytes = Vec::new();
    let read = reader.take(MAX_IMAGE_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| regular_file::unreadable(path, &error))?;
    if bytes.len() as u64 > MAX_IMAGE_BYTES {
        return Err(ToolError::failed(format!(
            "{} is a picture of {size} bytes, more than the {MAX_IMAGE_BYTES} that can be shown: make a smaller copy and read that",
            path.shown
        )));
    }
    let details = json!({"path": path.path, "mime_type": mime_type, "bytes": bytes.len()});
    let image =
        ContentBlock::Image { mime_type: mime_type.to_owned(), data: BASE64.encode(&bytes) };
    let text = format!("[{}: {mime_type}, {} bytes]", path.shown, bytes.len());
    let content = vec![ContentBlock::text(text), image];
    Ok(ToolOutput { content, details, ..ToolOutput::default() })
}
