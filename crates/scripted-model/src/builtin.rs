//! The scripts that are there without a file, and the one way from a name to a script.

use std::path::Path;

use crate::error::ScriptError;
use crate::fix_loop;
use crate::script::{Script, Turn};

/// The names of the built-in scripts.
pub(crate) const NAMES: [&str; 2] = ["fix-loop", "hello"];

/// The script that a name means: `fix-loop` and `hello` are built in; what begins with `./`, `../` or
/// `/` is a file, relative to `base_dir`. This is what stands behind `--model scripted/NAME`.
///
/// # Errors
/// [`ScriptError::UnknownName`] for any other name, and the errors of [`Script::read`].
///
/// ```
/// let script = scripted_model::load("hello", std::path::Path::new("."))?;
/// assert_eq!(script.name, "hello");
/// # Ok::<(), scripted_model::ScriptError>(())
/// ```
pub fn load(name: &str, base_dir: &Path) -> Result<Script, ScriptError> {
    match name {
        "fix-loop" => Ok(fix_loop::script()),
        "hello" => Ok(hello()),
        _ if name.starts_with("./") || name.starts_with("../") || name.starts_with('/') => {
            Script::read(&base_dir.join(name))
        }
        _ => Err(ScriptError::UnknownName { name: name.to_owned() }),
    }
}

/// One turn that says hello.
pub fn hello() -> Script {
    Script::new("hello").turn(Turn::text_only("Hello! I am a scripted model. What shall we build?"))
}
