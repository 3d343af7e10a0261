//! A scripted model behind a real HTTP server, for tests and demonstrations.
//!
//! [`ScriptedModel`] listens on a loopback port, speaks Anthropic's Messages, OpenAI's Chat
//! Completions and Responses, and Google's generateContent, all with server-sent events, and plays a
//! [`Script`]: what the model says, calls, reports and where it fails. It holds each request to the rules of its API and answers 400 as the real one
//! would, so that every test that uses it also checks what the client sends.
//!
//! It takes types from `ai` and nothing else: the rules and shapes are written a second time here, on
//! purpose, so that an error in the one is not repeated in the other.
//!
//! The format of scripts is described in `docs/scripted-model.md`; [`load`] finds one by its name.
//!
//! ```
//! use ai::Api;
//! use scripted_model::{Script, ScriptedModel};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let script = Script::from_toml(
//!     r#"
//!     name = "greeting"
//!     [[turns]]
//!     content = [{ type = "text", text = "Hello." }]
//!     "#,
//! )?;
//! let model = ScriptedModel::start(script).await?;
//! assert!(model.base_url(Api::OpenaiChat).ends_with("/v1"));
//!
//! let body = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"Hi"}]}"#;
//! let mut connection = tokio::net::TcpStream::connect(model.address()).await?;
//! let request = format!(
//!     "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer any\r\n\
//!      connection: close\r\ncontent-length: {}\r\n\r\n{body}",
//!     body.len()
//! );
//! connection.write_all(request.as_bytes()).await?;
//! let mut answer = String::new();
//! connection.read_to_string(&mut answer).await?;
//!
//! assert!(answer.starts_with("HTTP/1.1 200 OK"));
//! assert!(answer.contains(r#""content":"Hello.""#));
//! assert_eq!(model.requests()[0].body["messages"][0]["content"], "Hi");
//! assert_eq!(model.problems(), []);
//! # Ok(())
//! # }
//! ```

mod anthropic;
mod board;
mod body;
mod builtin;
mod conversation;
mod dialect;
mod error;
pub mod fix_loop;
mod google_generate;
mod host;
mod line;
mod openai;
mod openai_chat;
mod openai_responses;
mod plan;
mod record;
mod refusal;
mod rendered;
mod responder;
mod script;
mod server;
mod signature;
mod target;

pub use builtin::{hello, load};
pub use conversation::{Call, Conversation, Entry};
pub use dialect::Dialect;
pub use error::ScriptError;
pub use host::Host;
pub use record::{Problem, Progress, RecordedRequest};
pub use responder::Responder;
pub use script::{Arguments, Block, Expect, Fault, FaultBody, Script, Stop, Texts, Turn};
pub use server::ScriptedModel;
