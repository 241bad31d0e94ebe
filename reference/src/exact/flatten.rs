//! flatten: the elements in the same row-major order. Nothing is computed; every value stays as it is.

use ulpian_spec::ops::flatten::Flatten;

use super::{Context, Source, Value};

pub(super) fn element(args: &Flatten<Source<'_>>, index: usize, cx: &Context<'_>) -> Value {
    cx.get(&args.input, index)
}
