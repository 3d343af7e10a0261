//! [`Line`]: a way for an answer to break its own connection.
//!
//! hyper writes what it has buffered and then flushes; an answer that wants its connection broken says
//! so here and goes silent, and the first flush behind that breaks it. So everything that was sent
//! before is on the wire, and nothing else.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;

const OPEN: u8 = 0;
const CLOSE: u8 = 1;
const RESET: u8 = 2;

/// What the answers of one connection and its driver share.
#[derive(Debug, Default)]
pub(crate) struct Line {
    wish: AtomicU8,
    broken: Notify,
}

impl Line {
    /// Asks for the connection to be closed once all is flushed.
    pub(crate) fn close(&self) {
        self.wish.store(CLOSE, Ordering::Release);
    }

    /// Asks for the connection to be reset once all is flushed.
    pub(crate) fn reset(&self) {
        self.wish.store(RESET, Ordering::Release);
    }

    /// Waits until the connection is to be dropped.
    pub(crate) async fn broken(&self) {
        self.broken.notified().await;
    }
}

/// A connection that breaks when its [`Line`] asks for it.
#[derive(Debug)]
pub(crate) struct Breakable {
    stream: TcpStream,
    line: Arc<Line>,
}

impl Breakable {
    pub(crate) fn new(stream: TcpStream, line: Arc<Line>) -> Self {
        Self { stream, line }
    }
}

impl AsyncRead for Breakable {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Breakable {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if let Poll::Ready(Ok(())) = flushed {
            match self.line.wish.load(Ordering::Acquire) {
                OPEN => {}
                wish => {
                    // Closing a socket that lingers for no time at all sends a reset.
                    if wish == RESET {
                        self.stream.set_zero_linger()?;
                    }
                    self.line.broken.notify_one();
                }
            }
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
