//! [`Program`]: the built binary, run in a [`Bench`].
//!
//! Owns how it is found, what it inherits (nothing but what is said here), and the checks that
//! every run must pass: it ends in time, it leaves nothing behind, it prints no key and no
//! backtrace, and the scripted model had nothing to object to.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use ai::Api;
use rustix::process::{Pid, Signal};
use scripted_model::{Problem, ScriptedModel};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use crate::bench::Bench;

/// A run that takes longer hangs. Generous, since the machine may be busy with other tests.
const HANGS_AFTER: Duration = Duration::from_secs(30);

/// The key that every provider is asked with. It must never be printed.
pub const KEY: &str = "sk-recognisable-0123456789abcdef";

/// What standard input is.
#[derive(Clone, Debug)]
pub enum Input {
    /// `/dev/null`.
    Null,
    /// No descriptor at all.
    Closed,
    /// A pipe that holds this and then ends.
    Bytes(Vec<u8>),
    /// A file.
    File(PathBuf),
    /// A pipe that the test writes to: [`Running::send_line`].
    Open,
}

/// What standard output is.
#[derive(Clone, Copy, Debug)]
pub enum Output {
    /// A pipe that is read to its end.
    Captured,
    /// No descriptor at all.
    Closed,
    /// A pipe that nobody reads any more.
    Broken,
    /// A device that is full.
    Full,
}

/// A run of the binary that is still to be started.
#[derive(Clone, Debug)]
pub struct Program<'b> {
    bench: &'b Bench,
    model: Option<&'b ScriptedModel>,
    expected_problems: usize,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    directory: PathBuf,
    vanishes: bool,
    disk_is_full: bool,
    input: Input,
    output: Output,
    kept: Option<&'static str>,
}

impl Bench {
    /// The binary with these arguments, in the workspace.
    pub fn program<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Program<'_> {
        let mut variables = vec![
            ("PATH".into(), std::env::var_os("PATH").unwrap_or_default()),
            ("HOME".into(), self.user_home().into()),
            ("TMPDIR".into(), self.temporary().into()),
            ("CODING_AGENT_HOME".into(), self.agent_home().into()),
        ];
        // Coverage and sanitizers speak to the binary through these.
        for name in ["LLVM_PROFILE_FILE", "ASAN_OPTIONS", "RUST_BACKTRACE"] {
            variables.extend(std::env::var_os(name).map(|value| (name.into(), value)));
        }
        Program {
            bench: self,
            model: None,
            expected_problems: 0,
            arguments: arguments.into_iter().map(|argument| argument.as_ref().into()).collect(),
            variables,
            directory: self.work(),
            vanishes: false,
            disk_is_full: false,
            input: Input::Null,
            output: Output::Captured,
            kept: None,
        }
    }
}

impl<'b> Program<'b> {
    /// Asks this model, through the variables that point a built-in provider elsewhere.
    #[must_use]
    pub fn asking(mut self, model: &'b ScriptedModel, api: Api) -> Self {
        let (name, provider) = match api {
            Api::AnthropicMessages => ("ANTHROPIC", "anthropic/scripted"),
            Api::OpenaiChat => ("OPENAI", "openai/scripted"),
            other => panic!("the scripted model does not speak {}", other.as_str()),
        };
        self.model = Some(model);
        self.variable(format!("{name}_BASE_URL"), model.base_url(api))
            .variable(format!("{name}_API_KEY"), KEY)
            .arguments(["--model", provider])
    }

    /// Does not ask a model by itself, but is checked against this one's problems.
    #[must_use]
    pub fn checked_by(mut self, model: &'b ScriptedModel) -> Self {
        self.model = Some(model);
        self
    }

    /// Expects the model to object this often.
    #[must_use]
    pub fn expecting_problems(mut self, count: usize) -> Self {
        self.expected_problems = count;
        self
    }

    /// Further arguments.
    #[must_use]
    pub fn arguments<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().into()));
        self
    }

    /// An environment variable.
    #[must_use]
    pub fn variable(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.as_ref().into(), value.as_ref().into()));
        self
    }

    /// The directory it is started in.
    #[must_use]
    pub fn within(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = directory.into();
        self
    }

    /// Started in a directory that is made for it and removed before the program begins.
    #[must_use]
    pub fn within_vanished(mut self, directory: &Path) -> Self {
        std::fs::create_dir(directory).unwrap();
        self.directory = directory.to_owned();
        self.vanishes = true;
        self
    }

    /// No file that it writes takes a single byte.
    #[must_use]
    pub fn with_full_disk(mut self) -> Self {
        self.disk_is_full = true;
        self
    }

    /// Standard input.
    #[must_use]
    pub fn input(mut self, input: Input) -> Self {
        self.input = input;
        self
    }

    /// Standard input as a pipe that holds this and then ends.
    #[must_use]
    pub fn piped(self, bytes: impl AsRef<[u8]>) -> Self {
        self.input(Input::Bytes(bytes.as_ref().to_vec()))
    }

    /// Standard output.
    #[must_use]
    pub fn output(mut self, output: Output) -> Self {
        self.output = output;
        self
    }

    /// Temporary files that begin with this are meant to stay.
    #[must_use]
    pub fn keeps(mut self, prefix: &'static str) -> Self {
        self.kept = Some(prefix);
        self
    }

    /// Runs it to its end.
    pub async fn run(self) -> Ended {
        self.start().end().await
    }

    /// Starts it.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(self) -> Running<'b> {
        let mut command = self.command();
        let spawned = command.spawn();
        let mut child = spawned.unwrap_or_else(|error| panic!("{}: {error}", binary().display()));
        // The binary alone holds the other ends from here on.
        drop(command);
        let input = match (child.stdin.take(), self.input.clone()) {
            (Some(mut pipe), Input::Bytes(bytes)) => {
                tokio::spawn(async move {
                    // A program that does not read all of it is judged by how it ends.
                    let _ = pipe.write_all(&bytes).await;
                });
                None
            }
            (pipe, _) => pipe,
        };
        let output = child.stdout.take().map(|pipe| BufReader::new(pipe).lines());
        let errors = BufReader::new(child.stderr.take().unwrap()).lines();
        Running { program: self, child, input, output, errors, seen: Vec::new(), said: Vec::new() }
    }

    fn command(&self) -> Command {
        // Only a shell can do this between fork and exec without a line of unsafe code.
        let mut before = String::new();
        if self.vanishes {
            before += "rmdir \"$PWD\"; ";
        }
        if self.disk_is_full {
            before += "trap '' XFSZ; ulimit -f 0; ";
        }
        let mut redirections = String::new();
        if matches!(self.input, Input::Closed) {
            redirections += " <&-";
        }
        if matches!(self.output, Output::Closed) {
            redirections += " >&-";
        }
        let mut command = if redirections.is_empty() && before.is_empty() {
            Command::new(binary())
        } else {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", &format!("{before}exec \"$0\" \"$@\"{redirections}")]).arg(binary());
            shell
        };
        let stdin = match &self.input {
            Input::Null | Input::Closed => Stdio::null(),
            Input::Bytes(_) | Input::Open => Stdio::piped(),
            Input::File(path) => std::fs::File::open(path).unwrap().into(),
        };
        let stdout = match self.output {
            Output::Captured => Stdio::piped(),
            Output::Closed => Stdio::null(),
            Output::Broken => {
                let (reader, writer) = io::pipe().unwrap();
                drop(reader);
                writer.into()
            }
            Output::Full => {
                std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap().into()
            }
        };
        command
            .args(&self.arguments)
            .env_clear()
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.directory)
            .stdin(stdin)
            .stdout(stdout)
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}

/// The binary: what `CODING_AGENT_BIN` names, else the one of the profile that the test was built in.
fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("CODING_AGENT_BIN") {
        return path.into();
    }
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().find(|path| path.ends_with("deps")).and_then(Path::parent);
    let path = profile.unwrap_or(Path::new(".")).join("coding-agent");
    assert!(
        path.exists(),
        "{} is not there: `cargo xtask test` or `cargo build` builds it",
        path.display()
    );
    path
}

/// A run that is under way.
#[derive(Debug)]
pub struct Running<'b> {
    program: Program<'b>,
    child: Child,
    input: Option<ChildStdin>,
    output: Option<Lines<BufReader<ChildStdout>>>,
    errors: Lines<BufReader<ChildStderr>>,
    /// Lines of standard output that were read already.
    seen: Vec<String>,
    /// Lines of standard error that were read already.
    said: Vec<String>,
}

impl Running<'_> {
    /// Writes a line to its standard input.
    pub async fn send_line(&mut self, line: &str) {
        let input = self.input.as_mut().expect("standard input is open");
        input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// Ends its standard input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// The next line of standard output.
    pub async fn next_line(&mut self) -> String {
        let output = self.output.as_mut().expect("standard output is captured");
        let line = in_time(output.next_line()).await.unwrap().expect("standard output has ended");
        self.seen.push(line.clone());
        line
    }

    /// The next line of standard error.
    pub async fn next_error_line(&mut self) -> String {
        let line = in_time(self.errors.next_line()).await.unwrap().expect("standard error ended");
        self.said.push(line.clone());
        line
    }

    /// Reads standard error until it ends in this, which need not be a whole line.
    pub async fn wait_for_error_text(&mut self, end: &str) {
        let mut text = Vec::new();
        while !text.ends_with(end.as_bytes()) {
            let byte = in_time(self.errors.get_mut().read_u8()).await;
            text.push(byte.expect("standard error has ended"));
        }
        self.said.push(String::from_utf8(text).expect("only text is printed"));
    }

    /// Reads standard output, as JSON lines, until one of this type has come.
    pub async fn wait_for_event(&mut self, kind: &str) -> Value {
        loop {
            let event: Value = serde_json::from_str(&self.next_line().await).unwrap();
            if event["type"] == kind {
                return event;
            }
        }
    }

    /// Stops reading standard output: the pipe is broken from now on.
    pub fn close_output(&mut self) {
        self.output = None;
    }

    /// Sends a signal to the program alone.
    pub fn signal(&self, signal: Signal) {
        let number = i32::try_from(self.child.id().expect("it has not ended")).unwrap();
        rustix::process::kill_process(Pid::from_raw(number).unwrap(), signal).unwrap();
    }

    /// Sends a signal again and again until it has ended.
    pub async fn signal_until_ended(&mut self, signal: Signal) {
        let again = Duration::from_millis(5);
        while tokio::time::timeout(again, self.child.wait()).await.is_err() {
            self.signal(signal);
        }
    }

    /// Waits for its end and makes the checks of every run.
    ///
    /// # Panics
    /// When it hangs or breaks a rule.
    pub async fn end(mut self) -> Ended {
        drop(self.input.take());
        self.end_with_input_open().await
    }

    /// The same while its standard input stays open.
    ///
    /// # Panics
    /// When it hangs or breaks a rule.
    pub async fn end_with_input_open(mut self) -> Ended {
        let output = tokio::spawn(rest(self.output.take().map(Lines::into_inner)));
        let errors = tokio::spawn(rest(Some(self.errors.into_inner())));
        let status = match tokio::time::timeout(HANGS_AFTER, self.child.wait()).await {
            Ok(status) => status.unwrap(),
            Err(_) => {
                let _ = self.child.start_kill();
                panic!("{:?} hangs", self.program.arguments);
            }
        };
        let stdout = joined(self.seen, output).await;
        let stderr = joined(self.said, errors).await;
        let ended = Ended { code: code(status), stdout, stderr };
        ended.check(&self.program);
        ended
    }
}

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANGS_AFTER, future).await.expect("a line comes in time")
}

async fn rest<R: tokio::io::AsyncRead + Unpin>(pipe: Option<R>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        pipe.read_to_end(&mut bytes).await.unwrap();
    }
    String::from_utf8(bytes).expect("only text is printed")
}

async fn joined(lines: Vec<String>, rest: JoinHandle<String>) -> String {
    let rest = in_time(rest).await.unwrap();
    lines.into_iter().map(|line| line + "\n").collect::<String>() + &rest
}

/// The exit code, or the signal's number, negative.
fn code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| -signal)).unwrap()
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The exit code; a signal's number, negative, where one ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Ended {
    /// Standard output as one JSON value.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Standard output as lines of JSON.
    pub fn events(&self) -> Vec<Value> {
        let read = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
        };
        self.stdout.lines().map(read).collect()
    }

    /// The code and both outputs, to compare as a whole.
    pub fn all(&self) -> (i32, &str, &str) {
        (self.code, &self.stdout, &self.stderr)
    }

    fn check(&self, program: &Program<'_>) {
        program.bench.check_nothing_left(program.kept);
        for (name, text) in [("standard output", &self.stdout), ("standard error", &self.stderr)] {
            assert!(!text.contains(KEY), "the key is on {name}: {self:?}");
            for noise in ["panicked at", "stack backtrace", "this is a defect"] {
                assert!(!text.contains(noise), "`{noise}` is on {name}: {self:?}");
            }
        }
        if let Some(model) = program.model {
            let problems = model.problems();
            let shown: Vec<String> = problems.iter().map(Problem::to_string).collect();
            assert_eq!(problems.len(), program.expected_problems, "{shown:#?}\n{self:?}");
        }
    }
}
