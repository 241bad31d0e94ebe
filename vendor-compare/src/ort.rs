//! `ort:cpu`: ONNX Runtime's CPU provider, one model of one op per node.

use ulpian_spec::ExecutorId;
use ulpian_spec::executor::ExecutorIdError;

use crate::keys;

/// Checks that it is `ort:cpu`, which has no keys.
pub(crate) fn check(id: &ExecutorId) -> Result<(), ExecutorIdError> {
    if id.variant != "cpu" {
        return Err(keys::error(id, "the only variant of ort is cpu"));
    }
    keys::check(id, &[])
}
