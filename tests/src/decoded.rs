//! What a body decodes to, for the suites that compare it.

use ai::{
    Api, Assembler, AssistantMessage, DecodeOptions, MessageId, StreamDecoder, StreamEvent,
    Timestamp,
};

/// The events of a body that comes in these pieces.
pub fn events<'a>(
    api: Api,
    options: &DecodeOptions,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<StreamEvent> {
    let mut decoder = StreamDecoder::new(api, options.clone());
    let mut events = Vec::new();
    for piece in pieces {
        decoder.push(piece, &mut events);
    }
    decoder.finish(&mut events);
    events
}

/// The message that events come to; the same for the same events.
pub fn message(events: &[StreamEvent]) -> AssistantMessage {
    let mut assembler = Assembler::new(MessageId::from("m"), Timestamp(0));
    for event in events {
        assembler.push(event);
    }
    assembler.finish()
}
