//! Wrapper for every call: stops panics and stores error messages for the caller.

use crate::fault::{CallError, RaddleIdxStatus};
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// Message of the last call that failed on this thread.
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// Executes a call.
pub fn call(work: impl FnOnce() -> Result<(), CallError>) -> RaddleIdxStatus {
    // A handle that was being modified may be left in any valid state; memory is sound, and later calls on it may
    // succeed or fail.
    let outcome =
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(CallError::Panic { message: words(&*panic) }));
    match outcome {
        Ok(()) => RaddleIdxStatus::Ok,
        Err(fault) => {
            MESSAGE.set(c_text(&fault.message()));
            fault.status()
        }
    }
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without words").to_owned()
}

/// Converts the text for C. Names in files may contain a NUL, which would end the text there.
pub fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "?")).unwrap_or_default()
}

/// Returns the message of the last call that failed on this thread: the problem, its location, and the remedy. The text
/// remains valid until the next call fails on this thread; it is empty before the first failure.
#[unsafe(no_mangle)]
pub extern "C" fn raddle_idx_error_message() -> *const c_char {
    MESSAGE.with_borrow(|message| message.as_ptr())
}

/// Returns the version of raddle, for example "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn raddle_idx_version() -> *const c_char {
    const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version holds no zero"),
    };
    VERSION.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> String {
        // SAFETY: the message of this thread, which no call replaces in the meantime.
        unsafe { CStr::from_ptr(raddle_idx_error_message()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn panics_stop_and_words_stay_on_their_thread() {
        assert_eq!(message(), "");
        assert_eq!(call(|| panic!("a defect")), RaddleIdxStatus::Internal);
        assert!(message().contains("a defect") && message().contains("report"), "{}", message());
        std::thread::spawn(|| assert_eq!(message(), "")).join().unwrap();
        assert_eq!(call(|| Ok(())), RaddleIdxStatus::Ok);
        assert!(message().contains("a defect"));
        assert_eq!(call(|| Err(CallError::NoStep)), RaddleIdxStatus::Usage);
        assert!(message().starts_with("no step"));
        assert_eq!(c_text("a\0b").to_bytes(), b"a?b");
    }
}
