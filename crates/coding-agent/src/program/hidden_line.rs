//! A line typed at a terminal that does not show it.
//!
//! Owns the terminal's mode while the person types, and gives it back whatever happens: also at
//! Ctrl-C and the other signals that end the program.

use std::io::{self, BufRead, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::program::exit::Exit;
use crate::program::failure::Failure;
use crate::program::signals::Signals;

/// What the terminal keeps of a line, in bytes. It drops what is typed or pasted beyond it and says
/// nothing, so that a line of this length is taken for one that was cut.
const MAX_LINE_BYTES: usize = 4095;

/// What a person answered.
pub(crate) enum Typed {
    /// This line, without its end; empty at the end of input.
    Line(String),
    /// A signal, which ends the program with this.
    Ended(Exit),
}

/// Asks on standard error and reads a line from standard input, which is a terminal.
pub(crate) async fn ask(question: &str) -> Result<Typed, Failure> {
    let failed = |error: io::Error| Failure::failed(format!("cannot ask at the terminal: {error}"));
    // Before the terminal is changed: from here on no signal ends the program by itself.
    let mut signals = Signals::listen()?;
    let hidden = Hidden::begin().map_err(failed)?;
    eprint!("{question}");
    // Where standard error goes nowhere the person sees no question, and may answer all the same.
    let _ = io::stderr().flush();
    let reading = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map(|_| line)
    });
    let typed = tokio::select! {
        line = reading => match line {
            Ok(line) => line.map(|line| Typed::Line(line.trim_end_matches(['\r', '\n']).to_owned())),
            Err(error) => Err(error.into()),
        },
        (_, exit) = signals.next() => Ok(Typed::Ended(exit)),
    };
    drop(hidden);
    // The end of the line was not shown either.
    eprintln!();
    match typed.map_err(failed)? {
        Typed::Line(line) if line.len() >= MAX_LINE_BYTES => {
            Err(Failure::usage("this is too long to be typed: the terminal cuts it")
                .hint("pipe it in"))
        }
        typed => Ok(typed),
    }
}

/// The terminal does not show what is typed for as long as this lives.
struct Hidden(Termios);

impl Hidden {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ECHONL);
        // What was typed before the question is no answer to it.
        tcsetattr(io::stdin(), OptionalActions::Flush, &hidden)?;
        Ok(Self(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // Half a key that was typed when the signal came must not be left to the shell.
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.0);
    }
}
