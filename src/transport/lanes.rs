//! Several clients for one host, so that no HTTP/2 connection gets full.
//!
//! One hyper client keeps one HTTP/2 connection a host, and the service allows
//! about 128 streams on each (a comment in the official Python client). What
//! does not fit waits in silence, behind calls that are held for half a minute.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A growing set of equal clients.
pub(super) struct Lanes<C> {
    lanes: Mutex<Vec<Arc<Counted<C>>>>,
    per_lane: usize,
    max_lanes: usize,
    make: Box<dyn Fn() -> Option<C> + Send + Sync>,
}

struct Counted<C> {
    client: C,
    in_flight: AtomicUsize,
}

/// The use of a client by one call; given back on drop.
pub(super) struct Lane<C>(Arc<Counted<C>>);

impl<C> Deref for Lane<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.0.client
    }
}

impl<C> Drop for Lane<C> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<C> Lanes<C> {
    /// Starts with one client; `make` gives further ones, up to `max_lanes`.
    pub(super) fn new(
        first: C,
        per_lane: usize,
        max_lanes: usize,
        make: impl Fn() -> Option<C> + Send + Sync + 'static,
    ) -> Self {
        let first = Arc::new(Counted {
            client: first,
            in_flight: AtomicUsize::new(0),
        });
        Self {
            lanes: Mutex::new(vec![first]),
            per_lane,
            max_lanes,
            make: Box::new(make),
        }
    }

    /// The first client with room, else a new one, else the least used.
    ///
    /// Filling from the front lets the later connections fall idle and close.
    #[expect(
        clippy::expect_used,
        reason = "there is always the first lane: none is ever removed"
    )]
    pub(super) fn take(&self) -> Lane<C> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let count = |lane: &Arc<Counted<C>>| lane.in_flight.load(Ordering::Relaxed);
        let roomy = lanes
            .iter()
            .find(|lane| count(lane) < self.per_lane)
            .cloned();
        let lane = match roomy {
            Some(lane) => lane,
            None => {
                let more = (lanes.len() < self.max_lanes)
                    .then(|| (self.make)())
                    .flatten();
                if let Some(client) = more {
                    lanes.push(Arc::new(Counted {
                        client,
                        in_flight: AtomicUsize::new(0),
                    }));
                }
                lanes
                    .iter()
                    .min_by_key(|lane| count(lane))
                    .cloned()
                    .expect("one lane")
            }
        };
        lane.in_flight.fetch_add(1, Ordering::Relaxed);
        Lane(lane)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes() -> Lanes<usize> {
        let made = AtomicUsize::new(1);
        Lanes::new(0, 2, 3, move || Some(made.fetch_add(1, Ordering::Relaxed)))
    }

    #[test]
    fn a_further_client_is_made_before_one_is_overfull() {
        let lanes = lanes();
        let taken: Vec<_> = (0..6).map(|_| lanes.take()).collect();
        assert_eq!(
            taken.iter().map(|lane| **lane).collect::<Vec<_>>(),
            [0, 0, 1, 1, 2, 2]
        );
    }

    #[test]
    fn past_the_last_client_the_least_used_is_taken() {
        let lanes = lanes();
        let mut taken: Vec<_> = (0..6).map(|_| lanes.take()).collect();
        assert_eq!(*lanes.take(), 0);
        taken.remove(2);
        assert_eq!(*lanes.take(), 1);
    }

    #[test]
    fn a_client_given_back_is_used_again_first() {
        let lanes = lanes();
        let first = lanes.take();
        let _second = lanes.take();
        drop(first);
        assert_eq!(*lanes.take(), 0);
    }
}
