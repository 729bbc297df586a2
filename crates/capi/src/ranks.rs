//! Ranks as functions of the caller, so that MPI can be used without being linked.
//!
//! Invariants: those of core's communicators hold; a function that fails makes the call fail on this rank.

use crate::fault::CallError;
use raddle_core::error::{CoreError, Result};
use raddle_core::pause::pause_after;
use raddle_core::ranks::communicator::{Communicator, Rank};
use raddle_core::ranks::pieces::{self, MAX_PIECE_BYTES, PieceRow, PieceTransport};
use std::ffi::{c_int, c_void};

/// The ranks that write together, as functions that this library calls; raddle_idx_mpi.h implements them for an MPI
/// communicator. Each function is collective, is called on the thread that called the library, and returns 0 on success
/// and another number on failure; its arguments are valid until it returns. Counts and starts are in bytes, one per
/// rank. Messages of the library must be kept apart from other messages.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RaddleIdxRanks {
    /// Passed to every function. It must remain valid until the handle is closed.
    pub context: *mut c_void,
    /// Number of this rank, from 0.
    pub rank: i32,
    /// Number of ranks.
    pub size: i32,
    /// Returns once all ranks have called it.
    pub barrier: Option<unsafe extern "C" fn(context: *mut c_void) -> c_int>,
    /// Stores the word of rank i in words[i].
    pub all_gather_words: Option<unsafe extern "C" fn(context: *mut c_void, word: u64, words: *mut u64) -> c_int>,
    /// Sends send[i] to rank i, and stores the word from rank i in receive[i].
    pub all_to_all_words:
        Option<unsafe extern "C" fn(context: *mut c_void, send: *const u64, receive: *mut u64) -> c_int>,
    /// Stores the count bytes of rank i at receive + starts[i], where counts[i] bytes are expected.
    pub all_gather_pieces: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            send: *const c_void,
            count: c_int,
            receive: *mut c_void,
            counts: *const c_int,
            starts: *const c_int,
        ) -> c_int,
    >,
    /// Sends the send_counts[i] bytes at send + send_starts[i] to rank i, and stores the receive_counts[i] bytes from
    /// it at receive + receive_starts[i].
    pub all_to_all_pieces: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            send: *const c_void,
            send_counts: *const c_int,
            send_starts: *const c_int,
            receive: *mut c_void,
            receive_counts: *const c_int,
            receive_starts: *const c_int,
        ) -> c_int,
    >,
}

/// Ranks with a complete set of functions.
#[derive(Debug)]
pub struct CallerRanks {
    rank: Rank,
    size: usize,
    functions: RaddleIdxRanks,
}

impl CallerRanks {
    /// Checks the functions of the caller.
    ///
    /// # Errors
    /// If a function is null, or number and count of the ranks are invalid.
    pub fn new(functions: RaddleIdxRanks) -> std::result::Result<Self, CallError> {
        let RaddleIdxRanks { rank, size, .. } = functions;
        let no_rank = CallError::NoRank { rank, size };
        let (Ok(rank), Ok(size)) = (Rank::try_from(rank), usize::try_from(size)) else { return Err(no_rank) };
        if rank >= size {
            return Err(no_rank);
        }
        for (argument, is_there) in [
            ("barrier of ranks", functions.barrier.is_some()),
            ("all_gather_words of ranks", functions.all_gather_words.is_some()),
            ("all_to_all_words of ranks", functions.all_to_all_words.is_some()),
            ("all_gather_pieces of ranks", functions.all_gather_pieces.is_some()),
            ("all_to_all_pieces of ranks", functions.all_to_all_pieces.is_some()),
        ] {
            if !is_there {
                return Err(CallError::Null { argument });
            }
        }
        Ok(Self { rank, size, functions })
    }

    /// Converts the result of a function; a missing function counts as failed.
    fn outcome(&self, operation: &'static str, code: Option<c_int>) -> Result<()> {
        match code.unwrap_or(1) {
            0 => Ok(()),
            code => {
                let message = format!("the function that the caller gave for it returned {code}");
                Err(CoreError::RankFailed { operation, rank: self.rank, message })
            }
        }
    }
}

// SAFETY of all calls below: `context` and the functions come from the caller, who promises that they belong together;
// every buffer is as long as counts and starts, or the number of ranks, require, and lives until the function returns.
impl PieceTransport for CallerRanks {
    fn all_gather_words(&self, word: u64) -> Result<Vec<u64>> {
        let mut words = vec![0; self.size];
        // SAFETY: see above.
        let code = self
            .functions
            .all_gather_words
            .map(|call| unsafe { call(self.functions.context, word, words.as_mut_ptr()) });
        self.outcome("all_gather_words", code).map(|()| words)
    }

    fn all_to_all_words(&self, words: &[u64]) -> Result<Vec<u64>> {
        let mut got = vec![0; self.size];
        let call = self.functions.all_to_all_words;
        // SAFETY: see above; core passes one word for each rank.
        let code = call.map(|call| unsafe { call(self.functions.context, words.as_ptr(), got.as_mut_ptr()) });
        self.outcome("all_to_all_words", code).map(|()| got)
    }

    fn all_gather_pieces(&self, local: &[u8], got: &mut PieceRow) -> Result<()> {
        let (context, receive) = (self.functions.context, got.bytes.as_mut_ptr().cast());
        let (counts, starts) = (got.counts.as_ptr(), got.starts.as_ptr());
        // Core ensures that a piece's length fits 31 bits.
        let count = local.len() as c_int;
        let call = self.functions.all_gather_pieces;
        // SAFETY: see above.
        let code = call.map(|call| unsafe { call(context, local.as_ptr().cast(), count, receive, counts, starts) });
        self.outcome("all_gather_pieces", code)
    }

    fn all_to_all_pieces(&self, row: &PieceRow, got: &mut PieceRow) -> Result<()> {
        let (context, send, receive) =
            (self.functions.context, row.bytes.as_ptr().cast(), got.bytes.as_mut_ptr().cast());
        let (counts, starts) = (row.counts.as_ptr(), row.starts.as_ptr());
        let (got_counts, got_starts) = (got.counts.as_ptr(), got.starts.as_ptr());
        let call = self.functions.all_to_all_pieces;
        // SAFETY: see above.
        let code = call.map(|call| unsafe { call(context, send, counts, starts, receive, got_counts, got_starts) });
        self.outcome("all_to_all_pieces", code)
    }
}

impl Communicator for CallerRanks {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn barrier(&self) -> Result<()> {
        // SAFETY: see above.
        self.outcome("barrier", self.functions.barrier.map(|call| unsafe { call(self.functions.context) }))
    }

    fn all_gather_bytes(&self, send: &[u8]) -> Result<Vec<Vec<u8>>> {
        pieces::all_gather(self, MAX_PIECE_BYTES, send)
    }

    fn exchange_bytes(&self, send: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        pieces::exchange(self, MAX_PIECE_BYTES, &send)
    }
}

/// Yields the core to other threads, for a time that grows with the number of polls so far. For functions of ranks that
/// poll whether other ranks have arrived.
#[unsafe(no_mangle)]
pub extern "C" fn raddle_idx_pause(looks: u32) {
    pause_after(looks);
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_core::ranks::conformance;
    use raddle_core::ranks::threads::Threads;

    /// Ranks implemented as threads, accessed through C functions.
    struct OverThreads<'a>(&'a dyn Communicator);

    unsafe fn threads<'a>(context: *mut c_void) -> &'a dyn Communicator {
        // SAFETY: created in `table`, and outlives its use.
        unsafe { (*context.cast::<OverThreads<'a>>()).0 }
    }

    unsafe extern "C" fn barrier(context: *mut c_void) -> c_int {
        // SAFETY: from `table`.
        unsafe { threads(context) }.barrier().is_err().into()
    }

    unsafe extern "C" fn all_gather_words(context: *mut c_void, word: u64, words: *mut u64) -> c_int {
        // SAFETY: from `table`; there is space for a word of each rank.
        let (ranks, words) =
            unsafe { (threads(context), std::slice::from_raw_parts_mut(words, threads(context).size())) };
        let Ok(all) = ranks.all_gather_bytes(&word.to_le_bytes()) else { return 7 };
        for (word, bytes) in words.iter_mut().zip(all) {
            *word = u64::from_le_bytes(bytes.try_into().unwrap());
        }
        0
    }

    unsafe extern "C" fn all_to_all_words(context: *mut c_void, send: *const u64, receive: *mut u64) -> c_int {
        // SAFETY: from `table`; both arrays hold a word for every rank.
        let (ranks, send, receive) = unsafe {
            let size = threads(context).size();
            (threads(context), std::slice::from_raw_parts(send, size), std::slice::from_raw_parts_mut(receive, size))
        };
        let Ok(all) = ranks.exchange_bytes(send.iter().map(|word| word.to_le_bytes().to_vec()).collect()) else {
            return 7;
        };
        for (word, bytes) in receive.iter_mut().zip(all) {
            *word = u64::from_le_bytes(bytes.try_into().unwrap());
        }
        0
    }

    unsafe extern "C" fn all_gather_pieces(
        context: *mut c_void,
        send: *const c_void,
        count: c_int,
        receive: *mut c_void,
        counts: *const c_int,
        starts: *const c_int,
    ) -> c_int {
        // SAFETY: from `table`; `send` holds `count` bytes.
        let (ranks, send) =
            unsafe { (threads(context), std::slice::from_raw_parts(send.cast::<u8>(), count as usize)) };
        let Ok(all) = ranks.all_gather_bytes(send) else { return 7 };
        // SAFETY: as for this function.
        unsafe { place(&all, receive, counts, starts) }
    }

    unsafe extern "C" fn all_to_all_pieces(
        context: *mut c_void,
        send: *const c_void,
        send_counts: *const c_int,
        send_starts: *const c_int,
        receive: *mut c_void,
        receive_counts: *const c_int,
        receive_starts: *const c_int,
    ) -> c_int {
        // SAFETY: from `table`; there are counts and starts for every rank.
        let ranks = unsafe { threads(context) };
        let piece = |rank: usize| {
            // SAFETY: the piece is located as given by counts and starts.
            unsafe {
                let first = send.cast::<u8>().add(*send_starts.add(rank) as usize);
                std::slice::from_raw_parts(first, *send_counts.add(rank) as usize).to_vec()
            }
        };
        let Ok(all) = ranks.exchange_bytes((0..ranks.size()).map(piece).collect()) else { return 7 };
        // SAFETY: as for this function.
        unsafe { place(&all, receive, receive_counts, receive_starts) }
    }

    unsafe fn place(all: &[Vec<u8>], receive: *mut c_void, counts: *const c_int, starts: *const c_int) -> c_int {
        for (rank, piece) in all.iter().enumerate() {
            // SAFETY: there are counts and starts for every rank, and they stay inside the receive buffer.
            unsafe {
                assert_eq!(piece.len(), *counts.add(rank) as usize);
                let first = receive.cast::<u8>().add(*starts.add(rank) as usize);
                first.copy_from_nonoverlapping(piece.as_ptr(), piece.len());
            }
        }
        0
    }

    fn table(over: &mut OverThreads<'_>) -> RaddleIdxRanks {
        RaddleIdxRanks {
            rank: over.0.rank() as i32,
            size: over.0.size() as i32,
            context: (&raw mut *over).cast(),
            barrier: Some(barrier),
            all_gather_words: Some(all_gather_words),
            all_to_all_words: Some(all_to_all_words),
            all_gather_pieces: Some(all_gather_pieces),
            all_to_all_pieces: Some(all_to_all_pieces),
        }
    }

    #[test]
    fn ranks_of_callers_conform() {
        for size in [1, 2, 3, 5] {
            Threads::run(size, |threads| {
                let mut over = OverThreads(threads);
                conformance::all(&CallerRanks::new(table(&mut over)).unwrap());
            });
        }
    }

    #[test]
    fn a_function_that_fails_is_named() {
        unsafe extern "C" fn fails(_: *mut c_void) -> c_int {
            15
        }
        let failed = Threads::run(1, |threads| {
            let mut over = OverThreads(threads);
            let ranks = CallerRanks::new(RaddleIdxRanks { barrier: Some(fails), ..table(&mut over) }).unwrap();
            ranks.barrier().unwrap_err().to_string()
        });
        assert!(failed[0].contains("barrier") && failed[0].contains("15"), "{failed:?}");
    }

    #[test]
    fn tables_that_make_no_sense_are_refused() {
        Threads::run(1, |threads| {
            let mut over = OverThreads(threads);
            let table = table(&mut over);
            for (rank, size) in [(1, 1), (-1, 1), (0, 0), (0, -1)] {
                let refused = CallerRanks::new(RaddleIdxRanks { rank, size, ..table });
                assert!(matches!(refused, Err(CallError::NoRank { .. })), "{refused:?}");
            }
            let refused = CallerRanks::new(RaddleIdxRanks { all_to_all_pieces: None, ..table }).unwrap_err();
            assert_eq!(refused.to_string(), "all_to_all_pieces of ranks is NULL");
        });
    }
}
