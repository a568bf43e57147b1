//! The rate limits that a process knows to be used up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use domain::accounts::rates::{RouteClass, Window};

/// How many used-up windows a process remembers. Further ones are looked up in the table.
const REMEMBERED: usize = 10_000;

/// The windows that this process knows to be used up.
#[derive(Clone, Debug, Default)]
pub struct UsedUp(Arc<Mutex<HashMap<(String, RouteClass), Window>>>);

impl UsedUp {
    pub(crate) fn contains(&self, caller: &str, class: RouteClass, window: Window) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&(caller.to_owned(), class)) == Some(&window)
    }

    pub(crate) fn add(&self, caller: &str, class: RouteClass, window: Window) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.retain(|_, used_up| *used_up == window);
        }
        if known.len() < REMEMBERED {
            known.insert((caller.to_owned(), class), window);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_used_up_windows_is_bounded_and_forgets_old_ones() {
        let at = |second| Window::at(jiff::Timestamp::from_second(second).unwrap());
        let (used_up, old, new) = (UsedUp::default(), at(0), at(60));
        for n in 0..REMEMBERED + 5 {
            used_up.add(&n.to_string(), RouteClass::Others, old);
        }
        assert_eq!(used_up.0.lock().unwrap().len(), REMEMBERED);
        assert!(used_up.contains("0", RouteClass::Others, old));
        assert!(
            !used_up.contains("0", RouteClass::Others, new) && !used_up.contains("0", RouteClass::Mcp, old)
        );
        used_up.add("0", RouteClass::Others, new);
        assert_eq!(used_up.0.lock().unwrap().len(), 1);
    }
}
