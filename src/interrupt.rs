//! Ctrl-C and a plain `kill`: whatever Ulpian started ends with it.

/// From now on SIGINT and SIGTERM end the worker processes, and then this one, as they would have without a handler.
#[cfg(unix)]
pub(crate) fn handle() {
    use signal_hook::consts::{SIGINT, SIGTERM};
    // Without a handler the workers still notice that their pipe closes.
    let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) else { return };
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let _until_then = ulpian::vendor_compare::end_all();
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
}

/// The workers notice by themselves that their pipe closes.
#[cfg(not(unix))]
pub(crate) fn handle() {}
