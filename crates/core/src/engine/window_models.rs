//! Models of the window: loom runs workers and the calling thread in every interleaving, up to a number of preemptions,
//! and reports a lost wake-up as a deadlock.
//!
//! Each batch consists of two tiles of one array and is two bytes long when encoded. loom's waits never time out, so
//! the calling thread's polling does not hide a missing wake-up.

use super::EngineError;
use super::window::{Addressing, InFlightWindow, Job, LocalBatch, WindowLimits};
use crate::cancel::CancelToken;
use crate::error::CoreError;
use crate::output::addresses::Addresses;
use crate::output::claims::Claim;
use crate::plan::{ArrayPlan, Batch, Plan, Tile};
use crate::sync::Arc;
use loom::thread::{JoinHandle, spawn};
use std::convert::Infallible;

const START_ADDRESS: u64 = 100;

/// Length of an encoded batch, and of a buffer.
const STORED_LEN_BYTES: u64 = 2;

type Shared = Arc<InFlightWindow<Infallible>>;

fn window(batches: u64, addressing: Addressing, buffers: u64) -> Shared {
    let local_batch = |number| LocalBatch {
        batch: Batch { first: 2 * number, tiles: 2, raw_len_bytes: 2 },
        file: 0,
        lane: 0,
        received_len_bytes: 0,
    };
    let limits = WindowLimits {
        buffers_bytes: buffers * STORED_LEN_BYTES,
        buffer_len_bytes: STORED_LEN_BYTES,
        tiles: 2 * buffers,
    };
    Arc::new(InFlightWindow::new(
        (0..batches).map(local_batch).collect(),
        addressing,
        limits,
        Addresses::new(START_ADDRESS, None),
    ))
}

/// Runs a worker that encodes and writes; `refuse` decides whether the work at a tile fails.
fn worker(window: &Shared, refuse: impl Fn(u64) -> Option<EngineError<Infallible>> + 'static) -> JoinHandle<()> {
    window.worker_starts();
    let window = Arc::clone(window);
    spawn(move || {
        loop {
            match window.next_job() {
                Job::Exit => break,
                Job::Write(parcel) => window.placed(parcel),
                Job::Encode(mut parcel) => {
                    let (first, mut wanted) = (parcel.batch.first, true);
                    for ordinal in first..first + parcel.batch.tiles {
                        if let Some(error) = refuse(ordinal) {
                            window.fail(ordinal, error);
                            wanted = false;
                        }
                        wanted = wanted && window.wants(ordinal);
                        if !wanted {
                            break;
                        }
                        let tile = Tile { array: 0, index: ordinal };
                        parcel.claims.push(Claim { tile, address: ordinal - first, len_bytes: 1, filter_mask: 0 });
                        parcel.stored.push(ordinal as u8);
                    }
                    if wanted {
                        window.encoded(parcel);
                    }
                }
            }
        }
        window.worker_ends();
    })
}

fn never(_: u64) -> Option<EngineError<Infallible>> {
    None
}

/// Takes the next `count` batches like the calling thread and returns the addresses of their claims.
fn take(window: &Shared, first: usize, count: usize) -> Vec<u64> {
    let mut addresses = Vec::new();
    for number in first..first + count {
        let parcel = window.next_placed(|| false).expect("nothing fails");
        assert_eq!((parcel.number, parcel.stored_len_bytes), (number, STORED_LEN_BYTES));
        addresses.extend(parcel.claims.iter().map(|claim| claim.address));
        window.recycle(parcel);
    }
    addresses
}

/// Ends the workers and consumes the window.
fn finish<const N: usize>(window: Shared, workers: [JoinHandle<()>; N]) -> Result<Addresses, EngineError<Infallible>> {
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    Arc::try_unwrap(window).ok().expect("the workers have ended").into_result()
}

#[test]
fn with_memory_for_one_batch_all_are_placed_in_plan_order() {
    loom::model(|| {
        let window = window(2, Addressing::Ordered, 1);
        let workers = [worker(&window, never), worker(&window, never)];
        assert_eq!(take(&window, 0, 2), [100, 101, 102, 103]);
        assert_eq!(finish(window, workers).unwrap().end_address(), 104);
    });
}

#[test]
fn batches_that_are_encoded_out_of_turn_get_addresses_in_plan_order() {
    loom::model(|| {
        let window = window(2, Addressing::Ordered, 2);
        let workers = [worker(&window, never), worker(&window, never)];
        assert_eq!(take(&window, 0, 2), [100, 101, 102, 103]);
        assert_eq!(finish(window, workers).unwrap().end_address(), 104);
    });
}

#[test]
fn addresses_given_at_once_do_not_overlap() {
    loom::model(|| {
        let window = window(2, Addressing::Unordered, 2);
        let workers = [worker(&window, never), worker(&window, never)];
        let mut addresses = take(&window, 0, 2);
        addresses.sort_unstable();
        assert_eq!(addresses, [100, 101, 102, 103]);
        assert_eq!(finish(window, workers).unwrap().end_address(), 104);
    });
}

#[test]
fn rounds_are_opened_settled_and_placed() {
    loom::model(|| {
        let plan = Plan {
            arrays: vec![ArrayPlan {
                shape: vec![4],
                tile_shape: vec![1],
                element_len_bytes: 1,
                ..ArrayPlan::default()
            }],
        };
        let (index, mut taken) = (plan.tile_index(), Addresses::new(START_ADDRESS, None));
        let window = window(2, Addressing::Collective, 2);
        let workers = [worker(&window, never)];
        for round in 0..2 {
            window.reserve_received(1);
            window.open(1);
            window.wait_encoded(1, || false);
            let address = taken.take(0, 0, STORED_LEN_BYTES).unwrap();
            window.settle(1, &[address], &taken, &index);
            assert_eq!(take(&window, round, 1), [address, address + 1]);
        }
        assert_eq!(finish(window, workers).unwrap().end_address(), 104);
    });
}

#[test]
fn the_first_failure_in_plan_order_is_reported() {
    loom::model(|| {
        let window = window(2, Addressing::Ordered, 2);
        let refuse = |ordinal: u64| (ordinal >= 1).then(|| EngineError::Panicked { message: ordinal.to_string() });
        let workers = [worker(&window, refuse), worker(&window, refuse)];
        assert!(window.next_placed(|| false).is_none());
        window.wait_for_workers();
        let error = finish(window, workers).unwrap_err();
        assert!(matches!(error, EngineError::Panicked { message } if message == "1"));
    });
}

#[test]
fn a_failure_wakes_the_worker_that_has_nothing_to_do() {
    loom::model(|| {
        let window = window(1, Addressing::Ordered, 1);
        let refuse = |ordinal: u64| Some(EngineError::Panicked { message: ordinal.to_string() });
        let workers = [worker(&window, refuse), worker(&window, refuse)];
        assert!(window.next_placed(|| false).is_none());
        assert!(finish(window, workers).is_err());
    });
}

#[test]
fn a_cancelled_run_ends() {
    loom::model(|| {
        let (window, cancel) = (window(1, Addressing::Ordered, 1), CancelToken::new());
        let looks = cancel.clone();
        let refuse = move |_| looks.is_cancelled().then(|| CoreError::Cancelled.into());
        let workers = [worker(&window, refuse)];
        let canceller = cancel.clone();
        let canceller = spawn(move || canceller.cancel());
        let is_placed = window.next_placed(|| cancel.is_cancelled()).is_some();
        canceller.join().unwrap();
        // Every placed batch was taken, or the run reports why not.
        match finish(window, workers) {
            Ok(addresses) => assert!(is_placed && addresses.end_address() == 102),
            Err(error) => assert!(!is_placed && error.is_cancelled()),
        }
    });
}
