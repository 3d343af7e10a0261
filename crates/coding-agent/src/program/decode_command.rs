//! `decode`: a captured stream to events or to the message.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use ai::{
    Assembler, Compat, DecodeOptions, Message, MessageId, StreamDecoder, StreamEvent, Timestamp,
};

use crate::program::cli::{DecodeArguments, DecodeFormat};
use crate::program::exit::Exit;
use crate::program::failure::Failure;
use crate::program::output::Output;

/// Bytes read at once.
const PIECE: usize = 64 * 1024;

/// Decodes a file or standard input, piece by piece: a capture may be longer than memory.
pub(crate) fn run(arguments: &DecodeArguments, model: Option<&str>) -> Result<Exit, Failure> {
    let mut input = open(arguments.file.as_deref())?;
    let provider = arguments.provider.clone();
    let options = DecodeOptions {
        compat: provider.as_deref().map(Compat::for_provider).unwrap_or_default(),
        provider: provider.unwrap_or_else(|| arguments.api.as_str().to_owned()),
        model: model.unwrap_or_default().to_owned(),
        framing: arguments.framing,
    };
    let mut printer = Printer {
        output: Output::new(),
        format: arguments.output_format,
        assembler: Assembler::new(MessageId::random(), Timestamp::now()),
    };
    let mut decoder = StreamDecoder::new(arguments.api, options);
    let mut events = Vec::new();
    let mut piece = vec![0; PIECE];
    loop {
        let length = match input.read(&mut piece) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                return Err(Failure::usage(format!("cannot read the stream: {error}")));
            }
        };
        match piece.get(..length) {
            Some(bytes) if !bytes.is_empty() => decoder.push(bytes, &mut events),
            _ => break,
        }
        printer.events(&mut events)?;
    }
    decoder.finish(&mut events);
    printer.events(&mut events)?;
    printer.finish()?;
    Ok(Exit::Completed)
}

fn open(file: Option<&Path>) -> Result<Box<dyn Read>, Failure> {
    match file.filter(|file| *file != Path::new("-")) {
        None => Ok(Box::new(io::stdin().lock())),
        Some(path) => {
            let file = File::open(path).map_err(|error| {
                Failure::usage(format!("cannot read {}: {error}", path.display()))
            })?;
            Ok(Box::new(file))
        }
    }
}

struct Printer {
    output: Output,
    format: DecodeFormat,
    assembler: Assembler,
}

impl Printer {
    fn events(&mut self, events: &mut Vec<StreamEvent>) -> Result<(), Failure> {
        for event in events.drain(..) {
            match self.format {
                DecodeFormat::Events => self.output.json(&event)?,
                DecodeFormat::Message => self.assembler.push(&event),
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), Failure> {
        if self.format == DecodeFormat::Message {
            let message = Message::from(self.assembler.finish());
            self.output.json(&message)?;
        }
        self.output.flush()
    }
}
