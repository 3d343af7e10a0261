//! The product's system prompt: who the model is here, where it works, and how.

use std::path::Path;

/// The system prompt of a session in `cwd`. The same session always gets the same bytes.
pub fn system_prompt(cwd: &Path, appended: Option<&str>) -> String {
    let mut prompt = format!(
        "You are a coding agent. You work in a real repository on the user's machine, through tools.\n\
         \n\
         Working directory: {}\n\
         Platform: {}\n\
         \n\
         - Look before you change: read a file before you edit it, and keep its style.\n\
         - Make the smallest change that does what was asked, and nothing else.\n\
         - Calls that only read may be made together; they run at the same time.\n\
         - A failed call says why. Read it and mend the call; do not repeat it unchanged.\n\
         - A denied call was refused by the user or their settings: do not try to get around it.\n\
         - Check your work by running what the project offers, where you may.\n\
         - End with a short answer: what you did, and what you could not do.",
        cwd.display(),
        std::env::consts::OS,
    );
    if let Some(text) = appended.filter(|text| !text.trim().is_empty()) {
        prompt.push_str("\n\n");
        prompt.push_str(text.trim());
    }
    prompt
}
