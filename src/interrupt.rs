//! Ctrl-C and a plain `kill`: whatever Ulpian started ends with it.

use std::sync::{Mutex, PoisonError};

use crate::report::News;

/// What is said when a signal ends this process.
static LAST_WORDS: Mutex<Option<(News, String)>> = Mutex::new(None);

/// Has `words` said, by `news`, should a signal end this process from now on.
pub(crate) fn last_words(news: News, words: String) {
    *LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) = Some((news, words));
}

/// From now on SIGINT and SIGTERM end the worker processes, and then this one, as they would have without a handler.
#[cfg(unix)]
pub(crate) fn handle() {
    use signal_hook::consts::{SIGINT, SIGTERM};
    // Without a handler the workers still notice that their pipe closes.
    let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) else { return };
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let _until_then = ulpian::vendor_compare::end_all();
            if let Some((news, words)) = &*LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) {
                news.tell(words);
            }
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
}

/// The workers notice by themselves that their pipe closes.
#[cfg(not(unix))]
pub(crate) fn handle() {}
