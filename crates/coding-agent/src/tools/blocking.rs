//! Work on files away from the runtime's threads.

use agent::ToolError;

/// Runs `work` on a thread that may block. A panic goes on in the caller, where the outcome layer
/// reports it as the tool's.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(payload) => std::panic::resume_unwind(payload),
            Err(_) => Err(ToolError::failed("the program is ending")),
        },
    }
}
