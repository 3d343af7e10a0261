//! [`AnswerBody`]: a plan's steps, performed as hyper asks for the body.
//!
//! Decides nothing: what is sent, waited for and broken is in the [`crate::plan`].

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use crate::board::{Board, Ticket};
use crate::line::Line;
use crate::plan::{Break, End, Step, Wait};
use crate::record::Progress;

/// The body of one answer.
pub(crate) struct AnswerBody {
    steps: VecDeque<Step>,
    end: End,
    length: Option<usize>,
    waiting: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    board: Arc<Board>,
    line: Arc<Line>,
    /// Says how far the answer came; absent for answers that are not recorded.
    ticket: Option<Ticket>,
}

impl AnswerBody {
    pub(crate) fn new(
        steps: VecDeque<Step>,
        end: End,
        length: Option<usize>,
        line: Arc<Line>,
        board: Arc<Board>,
        ticket: Option<Ticket>,
    ) -> Self {
        let mut body = Self { steps, end, length, waiting: None, board, line, ticket };
        // hyper does not ask for an empty body at all.
        if body.is_complete() {
            body.finish(Progress::Answered);
        }
        body
    }

    /// A whole body that is sent at once.
    pub(crate) fn whole(bytes: Bytes, line: Arc<Line>, board: Arc<Board>) -> Self {
        let length = Some(bytes.len());
        Self::new(VecDeque::from([Step::Send(bytes)]), End::Complete, length, line, board, None)
    }

    fn is_complete(&self) -> bool {
        self.steps.is_empty() && self.waiting.is_none() && self.end == End::Complete
    }

    fn finish(&mut self, progress: Progress) {
        if let Some(ticket) = self.ticket.take() {
            ticket.finish(progress);
        }
    }
}

/// Waits for what a plan waits for.
pub(crate) async fn wait(wait: Wait, board: Arc<Board>) {
    match wait {
        Wait::Delay(delay) => tokio::time::sleep(delay).await,
        Wait::Gate(name) => board.pass_gate(&name).await,
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        loop {
            if let Some(waiting) = &mut self.waiting {
                ready!(waiting.as_mut().poll(cx));
                self.waiting = None;
            }
            match self.steps.pop_front() {
                Some(Step::Send(bytes)) => {
                    // hyper does not ask again for a body whose length it knows.
                    if self.is_complete() {
                        self.finish(Progress::Answered);
                    }
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                Some(Step::Wait(step)) => {
                    self.waiting = Some(Box::pin(wait(step, Arc::clone(&self.board))));
                }
                None => match self.end {
                    End::Complete => {
                        self.finish(Progress::Answered);
                        return Poll::Ready(None);
                    }
                    // Nothing wakes this body again. When the flush that follows breaks the
                    // connection, or the client leaves, it is dropped.
                    End::Broken(Break::Stall) => return Poll::Pending,
                    End::Broken(Break::Close) => {
                        self.finish(Progress::Broken);
                        self.line.close();
                        return Poll::Pending;
                    }
                    End::Broken(Break::Reset) => {
                        self.finish(Progress::Broken);
                        self.line.reset();
                        return Poll::Pending;
                    }
                },
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.is_complete()
    }

    fn size_hint(&self) -> SizeHint {
        match self.length.and_then(|length| u64::try_from(length).ok()) {
            Some(length) => SizeHint::with_exact(length),
            None => SizeHint::default(),
        }
    }
}
