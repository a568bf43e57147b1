//! What an area above this crate keeps in the memory of a process: one value for each type.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Values by their types. Cheap to clone.
#[derive(Clone, Default)]
pub struct Kept(Arc<Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>>);

impl Kept {
    /// The value of this type. The first call makes it.
    #[must_use]
    pub fn get<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        // The map is consistent whenever the lock is released, even by a panic.
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let value = values.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default()));
        // A value is only ever stored under its own type.
        value.clone().downcast().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn a_type_has_one_value() {
        let kept = Kept::default();
        kept.get::<AtomicU32>().fetch_add(1, Ordering::Relaxed);
        assert_eq!(kept.clone().get::<AtomicU32>().load(Ordering::Relaxed), 1);
        assert_eq!(*kept.get::<String>(), "");
    }
}
