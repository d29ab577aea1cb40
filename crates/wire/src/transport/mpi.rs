//! Workers as processes of an MPI job: `mpirun -n 4 …`, `srun …`.
//!
//! A frame is one message of bytes, or several when it is longer than an MPI count can say; all have the same MPI tag,
//! so MPI keeps their order and Laconic's tags stay inside the frames. An empty message is a farewell: its sender will
//! send no more. Sends are `MPI_Isend`, their buffers are kept here until MPI has done with them; receives poll
//! `MPI_Improbe`, because MPI's own waits know no deadline. ARCHITECTURE.md lists the homes of `unsafe`.
#![allow(unsafe_code)]

mod machine;

pub use machine::{EAGER_BYTES, EAGER_LIMIT, library_version, raise_eager_limit};

use super::end::ANY;
use super::{End, Stash, Transport, Wait};
use crate::{Frame, Header, Rank, Result, Tag, WireError};
use mpi::ffi;
use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

/// No frame is larger: one that says so is refused before anything is allocated for it.
pub const PAYLOAD_BYTES_MAX: usize = 16 << 30;

/// The longest message: well within an MPI count, which is an `int`.
const CHUNK_BYTES: usize = 1 << 30;

/// The MPI tag of all messages.
const MPI_TAG: c_int = 0;

/// A wait polls this often before it begins to sleep between polls, which on one machine covers a normal exchange.
const SPINS: u32 = 500;

/// The sleep between polls: shorter than a frame's way through most networks, long enough to leave the core to others.
const SLEEP: Duration = Duration::from_micros(50);

/// This process's end of an MPI job. There can be one.
///
/// [`finish`](Transport::finish) flushes, says farewell and waits for everyone's farewell; if it succeeded, dropping
/// the transport ends MPI in good order. Dropped without it, after an error or by a panic, the transport says farewell
/// without waiting, so that the others learn at once whom they wait for in vain, and leaves MPI as it is: then exit
/// with a code other than 0, or call [`abort`], and `mpirun` ends the job.
#[derive(Debug)]
pub struct MpiTransport {
    end: End,
    stash: Stash,
    in_flight: Vec<InFlight>,
    /// Who has said farewell.
    gone: Vec<bool>,
    chunk_bytes: usize,
    finished: bool,
}

/// A frame that MPI still reads.
#[derive(Debug)]
struct InFlight {
    to: Rank,
    tag: Tag,
    bytes: Vec<u8>,
    first: ffi::MPI_Request,
    /// Of the further messages of a long frame; normally empty.
    more: Vec<ffi::MPI_Request>,
}

// SAFETY: MPI is initialised for calls from any thread, one at a time, and every call needs `&mut` of the one transport
// of this process. Requests are handles that any thread may use. (`abort` alone needs no transport; it never returns.)
unsafe impl Send for MpiTransport {}

/// Ends the whole job now, with this exit code. For errors after which the others cannot go on, once they have been
/// reported.
pub fn abort(code: i32) -> ! {
    let (mut initialised, mut finalised) = (0, 0);
    // SAFETY: these two may be called at any time, and MPI_Abort between initialisation and finalisation.
    unsafe {
        ffi::MPI_Initialized(&mut initialised);
        ffi::MPI_Finalized(&mut finalised);
        if initialised != 0 && finalised == 0 {
            ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, code);
        }
    }
    std::process::exit(code)
}

impl MpiTransport {
    /// Joins the job. Once per process, before any other use of MPI.
    ///
    /// # Errors
    ///
    /// [`WireError::Library`] if this process has joined before, or this MPI cannot be called from several threads.
    pub fn init(deadline: Duration) -> Result<MpiTransport> {
        let (mut initialised, mut provided, mut rank, mut size) = (0, 0, 0, 0);
        // SAFETY: MPI_Initialized may be called at any time; MPI_Init_thread once, which is checked, and it accepts
        // null for the arguments; the others follow a successful initialisation. All pointers are to live locals.
        unsafe {
            check(Rank(0), "MPI_Initialized", ffi::MPI_Initialized(&mut initialised))?;
            if initialised != 0 {
                return Err(library(Rank(0), "MPI_Init_thread", "this process has joined the job before"));
            }
            let wanted = ffi::RSMPI_THREAD_SERIALIZED;
            let code = ffi::MPI_Init_thread(ptr::null_mut(), ptr::null_mut(), wanted, &mut provided);
            check(Rank(0), "MPI_Init_thread", code)?;
            check(Rank(0), "MPI_Comm_rank", ffi::MPI_Comm_rank(ffi::RSMPI_COMM_WORLD, &mut rank))?;
            let rank = Rank(rank as u32);
            check(rank, "MPI_Comm_size", ffi::MPI_Comm_size(ffi::RSMPI_COMM_WORLD, &mut size))?;
            let code = ffi::MPI_Comm_set_errhandler(ffi::RSMPI_COMM_WORLD, ffi::RSMPI_ERRORS_RETURN);
            check(rank, "MPI_Comm_set_errhandler", code)?;
            if provided < wanted {
                return Err(library(rank, "MPI_Init_thread", "this MPI cannot be called from several threads in turn"));
            }
        }
        let (rank, size) = (Rank(rank as u32), size as usize);
        Ok(MpiTransport {
            end: End::new(rank, size, deadline),
            stash: Stash::new(rank, size),
            in_flight: Vec::new(),
            gone: vec![false; size],
            chunk_bytes: CHUNK_BYTES,
            finished: false,
        })
    }

    /// Cuts frames into messages of at most this size. Receivers need not know it; tests do this with small frames.
    ///
    /// # Panics
    ///
    /// If a header does not fit, or an MPI count cannot say the size.
    pub fn set_chunk_bytes(&mut self, bytes: usize) {
        assert!((crate::HEADER_BYTES..=CHUNK_BYTES).contains(&bytes), "a message of {bytes} bytes");
        self.chunk_bytes = bytes;
    }

    /// Begins to send one message. The bytes must stay where they are until the request is complete.
    fn isend(&self, to: Rank, bytes: &[u8]) -> Result<ffi::MPI_Request> {
        let count = c_int::try_from(bytes.len()).expect("messages are cut to fit");
        // SAFETY: reading a constant of the library.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        // SAFETY: the pointer is valid for `count` bytes; the caller keeps them until the request is complete.
        let code = unsafe {
            let (byte, world) = (ffi::RSMPI_UINT8_T, ffi::RSMPI_COMM_WORLD);
            ffi::MPI_Isend(bytes.as_ptr().cast(), count, byte, to.0 as c_int, MPI_TAG, world, &mut request)
        };
        check(self.end.rank(), "MPI_Isend", code)?;
        Ok(request)
    }

    /// Tells everybody that no more will come. An empty message is complete when MPI has it, so nobody keeps the
    /// request.
    fn say_farewell(&self) -> Result<()> {
        for peer in self.end.rank().others(self.end.size()) {
            let mut request = self.isend(peer, &[])?;
            // SAFETY: the request is active and its message has no bytes that MPI could still read.
            check(self.end.rank(), "MPI_Request_free", unsafe { ffi::MPI_Request_free(&mut request) })?;
        }
        Ok(())
    }

    /// Lets MPI get on with the sends and takes back the buffers of those that are complete.
    fn progress(&mut self) -> Result<()> {
        let mut place = 0;
        while place < self.in_flight.len() {
            let sending = &mut self.in_flight[place];
            let mut complete = true;
            for request in std::iter::once(&mut sending.first).chain(&mut sending.more) {
                complete &= test(self.end.rank(), request)?;
            }
            if complete {
                self.end.buffers().put(self.in_flight.swap_remove(place).bytes);
            } else {
                place += 1;
            }
        }
        Ok(())
    }

    /// Looks once for a message of this peer and begins to receive it behind `bytes`.
    fn probe(&mut self, from: Rank, mut bytes: Vec<u8>) -> Result<Probed> {
        // SAFETY: reading a constant of the library; a status is plain numbers, for which zero is a value.
        let (mut message, mut status) = unsafe { (ffi::RSMPI_MESSAGE_NULL, mem::zeroed::<ffi::MPI_Status>()) };
        let (mut found, mut count) = (0, 0);
        // SAFETY: all pointers are to live locals, and the status is read only if the probe filled it.
        unsafe {
            let world = ffi::RSMPI_COMM_WORLD;
            let code = ffi::MPI_Improbe(from.0 as c_int, MPI_TAG, world, &mut found, &mut message, &mut status);
            check(self.end.rank(), "MPI_Improbe", code)?;
            if found == 0 {
                return Ok(Probed::Nothing(bytes));
            }
            check(self.end.rank(), "MPI_Get_count", ffi::MPI_Get_count(&status, ffi::RSMPI_UINT8_T, &mut count))?;
        }
        let len =
            usize::try_from(count).map_err(|_| library(self.end.rank(), "MPI_Get_count", "not a number of bytes"))?;
        if bytes.is_empty() && len > 0 {
            let used = mem::replace(&mut bytes, self.end.buffers().take(len));
            self.end.buffers().put(used);
        }
        bytes.reserve(len);
        let spare = bytes.spare_capacity_mut();
        // SAFETY: reading a constant of the library.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        // SAFETY: the spare capacity is valid for `len` bytes. The vector is moved from here on but neither touched nor
        // freed before the request is complete: `receive` completes it or forgets the vector.
        let code = unsafe {
            let place: *mut c_void = spare.as_mut_ptr().cast();
            ffi::MPI_Imrecv(place, count, ffi::RSMPI_UINT8_T, &mut message, &mut request)
        };
        check(self.end.rank(), "MPI_Imrecv", code)?;
        Ok(Probed::Coming { bytes, len, request })
    }

    /// Receives one message behind `bytes`; none if it is a farewell.
    fn receive(&mut self, from: Rank, bytes: Vec<u8>, wait: &Wait<'_>) -> Result<Option<Vec<u8>>> {
        let mut polls = Polls::default();
        let mut bytes = bytes;
        let (bytes, len, request) = loop {
            match self.probe(from, bytes)? {
                Probed::Coming { bytes, len, request } => break (bytes, len, request),
                Probed::Nothing(unused) => bytes = unused,
            }
            self.progress()?;
            let nap = wait.nap(|| self.stash.oldest(from))?;
            polls.pause(nap);
        };
        self.complete(from, bytes, (len, request), wait)
    }

    /// Ends the receipt of a message of so many bytes that has begun behind `bytes`; none if it is a farewell.
    fn complete(
        &mut self,
        from: Rank,
        mut bytes: Vec<u8>,
        (len, mut request): (usize, ffi::MPI_Request),
        wait: &Wait<'_>,
    ) -> Result<Option<Vec<u8>>> {
        let mut polls = Polls::default();
        let complete = loop {
            match test(self.end.rank(), &mut request).and_then(|complete| {
                if !complete {
                    self.progress()?;
                    let nap = wait.nap(|| self.stash.oldest(from))?;
                    polls.pause(nap);
                }
                Ok(complete)
            }) {
                Ok(false) => {}
                outcome => break outcome,
            }
        };
        if let Err(error) = complete {
            // MPI may still write into it.
            mem::forget(bytes);
            return Err(error);
        }
        // SAFETY: the message is complete and has filled `len` bytes of the spare capacity.
        unsafe { bytes.set_len(bytes.len() + len) };
        Ok((len > 0).then_some(bytes))
    }

    /// Receives one whole frame; none if a farewell comes instead.
    fn receive_frame(&mut self, from: Rank, wait: &Wait<'_>) -> Result<Option<Frame>> {
        match self.receive(from, Vec::new(), wait)? {
            Some(bytes) => self.rest_of_frame(from, bytes, wait),
            None => Ok(None),
        }
    }

    /// The frame whose first message this is.
    fn rest_of_frame(&mut self, from: Rank, mut bytes: Vec<u8>, wait: &Wait<'_>) -> Result<Option<Frame>> {
        let expected = Header::parse(&bytes, PAYLOAD_BYTES_MAX)?.travelling_bytes();
        while bytes.len() < expected {
            match self.receive(from, bytes, wait)? {
                Some(longer) => bytes = longer,
                None => return Ok(None),
            }
        }
        Frame::parse(bytes, PAYLOAD_BYTES_MAX).map(Some)
    }

    /// Waits for the frame; the caller has looked into the stash.
    fn wait(&mut self, from: Rank, tag: Tag, wait: &Wait<'_>) -> Result<Frame> {
        loop {
            if self.gone[from.index()] {
                return Err(wait.gone());
            }
            let received = self.receive_frame(from, wait).map_err(|error| match error {
                WireError::Header { .. } | WireError::TooLarge { .. } => error.from_peer(self.end.rank(), from, tag),
                error => error,
            })?;
            match received {
                None => self.gone[from.index()] = true,
                Some(frame) => {
                    if let Some(frame) = self.stash.sort(from, tag, frame)? {
                        return Ok(frame);
                    }
                }
            }
        }
    }

    /// Waits until MPI has taken all frames, then for everyone's farewell.
    fn take_leave(&mut self) -> Result<()> {
        let (rank, start, patience) = (self.end.rank(), Instant::now(), self.end.patience().clone());
        let unfinished = |peer, unsent| WireError::Unfinished { rank, peer, waited: start.elapsed(), unsent };
        let mut polls = Polls::default();
        self.progress()?;
        while let Some(sending) = self.in_flight.first() {
            if patience.is_over(start) {
                return Err(unfinished(sending.to, Some(sending.tag)));
            }
            polls.pause(SLEEP);
            self.progress()?;
        }
        self.say_farewell()?;
        for peer in Rank::all(self.end.size()).filter(|&peer| peer != rank) {
            while !self.gone[peer.index()] {
                let wait = patience.wait(rank, peer, ANY);
                // Frames that nobody asked for, such as the last ones of a pipeline, are dropped.
                match self.receive_frame(peer, &wait) {
                    Ok(None) => self.gone[peer.index()] = true,
                    Ok(Some(frame)) if !patience.is_over(start) => self.recycle(frame),
                    Ok(Some(_)) | Err(WireError::Deadline { .. } | WireError::Interrupted { .. }) => {
                        return Err(unfinished(peer, None));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

/// What a look for a message found.
enum Probed {
    Nothing(Vec<u8>),
    Coming { bytes: Vec<u8>, len: usize, request: ffi::MPI_Request },
}

/// Counts the polls of a wait: the first follow one another, the others after a short sleep.
#[derive(Default)]
struct Polls(u32);

impl Polls {
    fn pause(&mut self, nap: Duration) {
        self.0 += 1;
        if self.0 < SPINS { thread::yield_now() } else { thread::sleep(nap.min(SLEEP)) }
    }
}

/// Whether the request is complete. A complete one becomes null, and null is complete.
fn test(rank: Rank, request: &mut ffi::MPI_Request) -> Result<bool> {
    let mut complete = 0;
    // SAFETY: the request is one that MPI gave, or null.
    let code = unsafe { ffi::MPI_Test(request, &mut complete, ffi::RSMPI_STATUS_IGNORE) };
    check(rank, "MPI_Test", code)?;
    Ok(complete != 0)
}

fn library(rank: Rank, call: &'static str, message: &str) -> WireError {
    WireError::Library { rank, call, message: message.to_owned() }
}

/// Turns MPI's code into an error with MPI's words.
fn check(rank: Rank, call: &'static str, code: c_int) -> Result<()> {
    if code == ffi::MPI_SUCCESS as c_int {
        return Ok(());
    }
    let mut text = [0u8; ffi::MPI_MAX_ERROR_STRING as usize];
    let mut len = 0;
    // SAFETY: the text has the room that MPI asks for.
    let told = unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &mut len) };
    let len = if told == ffi::MPI_SUCCESS as c_int { len.clamp(0, text.len() as c_int) as usize } else { 0 };
    Err(library(rank, call, &format!("code {code} {}", String::from_utf8_lossy(&text[..len]))))
}

impl Transport for MpiTransport {
    fn end(&self) -> &End {
        &self.end
    }

    fn end_mut(&mut self) -> &mut End {
        &mut self.end
    }

    fn send(&mut self, to: Rank, frame: Frame) -> Result<()> {
        self.end.assert_peer(to);
        let tag = frame.tag();
        if self.gone[to.index()] {
            return Err(WireError::Gone { rank: self.end.rank(), peer: to, tag, sending: true });
        }
        self.progress()?;
        let bytes = frame.into_bytes();
        let mut chunks = bytes.chunks(self.chunk_bytes);
        // A frame has at least its header, so there is a first message.
        let first = self.isend(to, chunks.next().expect("a frame is never empty"))?;
        let more = chunks.map(|chunk| self.isend(to, chunk)).collect::<Result<Vec<_>>>();
        match more {
            Ok(more) => {
                self.in_flight.push(InFlight { to, tag, bytes, first, more });
                Ok(())
            }
            Err(error) => {
                // MPI may still read the messages that were begun.
                mem::forget(bytes);
                Err(error)
            }
        }
    }

    fn recv(&mut self, from: Rank, tag: Tag) -> Result<Frame> {
        self.end.assert_peer(from);
        // Also where nothing is waited for, so that buffers come back.
        self.progress()?;
        if let Some(frame) = self.stash.take(from, tag)? {
            return Ok(frame);
        }
        let patience = self.end.patience().clone();
        let wait = patience.wait(self.end.rank(), from, tag);
        let outcome = self.wait(from, tag, &wait);
        let waited = self.end.waited() + wait.waited();
        self.end.set_waited(waited);
        outcome
    }

    fn poll(&mut self, from: Rank) -> Result<Option<Frame>> {
        self.end.assert_peer(from);
        self.progress()?;
        if let Some(frame) = self.stash.next(from) {
            return Ok(Some(frame));
        }
        if self.gone[from.index()] {
            return Err(self.end.gone(from));
        }
        let Probed::Coming { bytes, len, request } = self.probe(from, Vec::new())? else { return Ok(None) };
        // The rest is under way.
        let patience = self.end.patience().clone();
        let wait = patience.wait(self.end.rank(), from, ANY);
        let frame = match self.complete(from, bytes, (len, request), &wait)? {
            Some(bytes) => self.rest_of_frame(from, bytes, &wait)?,
            None => None,
        };
        if frame.is_none() {
            self.gone[from.index()] = true;
            return Err(self.end.gone(from));
        }
        Ok(frame)
    }

    fn finish(&mut self) -> Result<()> {
        if !self.finished {
            self.take_leave()?;
            self.finished = true;
        }
        Ok(())
    }
}

impl Drop for MpiTransport {
    fn drop(&mut self) {
        if self.finished {
            // SAFETY: MPI was initialised by `init`, and no request is active: `take_leave` has completed them all, and
            // nothing is sent after it without a peer that is still there.
            unsafe { ffi::MPI_Finalize() };
        } else {
            // There is nobody left to tell about an error in saying farewell.
            let _ = self.say_farewell();
            // MPI may still read them.
            mem::forget(mem::take(&mut self.in_flight));
        }
    }
}
