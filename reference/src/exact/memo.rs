//! Remembered values of intermediate elements, and of what a row's elements share.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::value::Value;

/// An element at a working precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) node: usize,
    pub(super) output: usize,
    pub(super) index: usize,
    pub(super) prec: usize,
}

enum Entry {
    Value(Value),
    Shared(Arc<[Value]>),
}

const SHARDS: usize = 64;

/// A map that many threads use; all of it is forgotten when it exceeds its share of memory.
pub(super) struct Memo {
    shards: Vec<Mutex<HashMap<Key, Entry>>>,
    hasher: RandomState,
    bytes: AtomicUsize,
    max_bytes: usize,
}

impl Memo {
    pub(super) fn new(max_bytes: usize) -> Memo {
        Memo {
            shards: (0..SHARDS).map(|_| Mutex::new(HashMap::new())).collect(),
            hasher: RandomState::new(),
            bytes: AtomicUsize::new(0),
            max_bytes,
        }
    }

    fn shard(&self, key: &Key) -> &Mutex<HashMap<Key, Entry>> {
        &self.shards[self.hasher.hash_one(key) as usize % SHARDS]
    }

    fn find<T>(&self, key: &Key, get: impl FnOnce(&Entry) -> Option<T>) -> Option<T> {
        let shard = self.shard(key).lock().unwrap_or_else(PoisonError::into_inner);
        shard.get(key).and_then(get)
    }

    fn insert(&self, key: Key, entry: Entry, bytes: usize) {
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > self.max_bytes {
            self.bytes.store(bytes, Ordering::Relaxed);
            for shard in &self.shards {
                shard.lock().unwrap_or_else(PoisonError::into_inner).clear();
            }
        }
        self.shard(&key).lock().unwrap_or_else(PoisonError::into_inner).insert(key, entry);
    }

    /// The value of an element; computed without a lock held, so two threads may both compute it.
    pub(super) fn value(&self, key: Key, compute: impl FnOnce() -> Value) -> Value {
        let found = self.find(&key, |e| match e {
            Entry::Value(v) => Some(v.clone()),
            Entry::Shared(_) => None,
        });
        found.unwrap_or_else(|| {
            let value = compute();
            self.insert(key, Entry::Value(value.clone()), size_of(&value));
            value
        })
    }

    /// What a row shares.
    pub(super) fn shared(&self, key: Key, compute: impl FnOnce() -> Vec<Value>) -> Arc<[Value]> {
        let found = self.find(&key, |e| match e {
            Entry::Shared(v) => Some(v.clone()),
            Entry::Value(_) => None,
        });
        found.unwrap_or_else(|| {
            let values: Arc<[Value]> = compute().into();
            let bytes = values.iter().map(size_of).sum();
            self.insert(key, Entry::Shared(values.clone()), bytes);
            values
        })
    }
}

/// Bytes that an entry takes, about.
fn size_of(value: &Value) -> usize {
    let overhead = 2 * std::mem::size_of::<(Key, Entry)>();
    overhead
        + match value {
            Value::Exact(r) => r.bits() / 8,
            Value::Ball(b, form) => {
                // A factor with its place in lists and its reference count takes some 100 bytes.
                let form = form.as_ref().map_or(0, |f| f.bits() / 8 + 100 * f.weight());
                dashu_base::BitTest::bit_len(&b.mid) / 8 + form
            }
            _ => 0,
        }
}
