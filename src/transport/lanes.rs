//! Several clients for one host, so that no HTTP/2 connection gets full.
//!
//! One hyper client keeps one HTTP/2 connection a host, and the service allows
//! about 128 streams on each (a comment in the official Python client). What
//! does not fit waits in silence, behind calls that are held for half a minute.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A growing set of equal clients, made when they are needed.
pub(super) struct Lanes<C> {
    lanes: Mutex<Vec<Arc<Counted<C>>>>,
    limits: Limits,
    make: Box<dyn Fn() -> Option<C> + Send + Sync>,
}

/// How many clients there are and when one is stale.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Calls on a client before another is made.
    pub(super) per_lane: usize,
    /// Clients at most; past that the least used takes more.
    pub(super) max_lanes: usize,
    /// A client that was not used for this long has no connection left, and is
    /// made anew: by then it is known what the host speaks.
    pub(super) idle: Duration,
}

struct Counted<C> {
    client: C,
    in_flight: AtomicUsize,
    used_at: Mutex<Instant>,
}

impl<C> Counted<C> {
    fn new(client: C) -> Arc<Self> {
        Arc::new(Self {
            client,
            in_flight: AtomicUsize::new(0),
            used_at: Instant::now().into(),
        })
    }

    fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    fn used_at(&self) -> MutexGuard<'_, Instant> {
        self.used_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        *self.0.used_at() = Instant::now();
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<C> Lanes<C> {
    pub(super) fn new(
        limits: Limits,
        make: impl Fn() -> Option<C> + Send + Sync + 'static,
    ) -> Self {
        Self {
            lanes: Mutex::default(),
            limits,
            make: Box::new(make),
        }
    }

    /// The first client with room, else a new one, else the least used. `None`
    /// only where none can be made.
    ///
    /// Filling from the front lets the later connections fall idle and close.
    pub(super) fn take(&self) -> Option<Lane<C>> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = self.limits.idle;
        lanes.retain(|lane| lane.in_flight() > 0 || lane.used_at().elapsed() < idle);
        let roomy = lanes
            .iter()
            .find(|lane| lane.in_flight() < self.limits.per_lane)
            .cloned();
        let lane = match roomy {
            Some(lane) => lane,
            None => {
                let more = lanes.len() < self.limits.max_lanes;
                if let Some(client) = more.then(|| (self.make)()).flatten() {
                    lanes.push(Counted::new(client));
                }
                lanes.iter().min_by_key(|lane| lane.in_flight()).cloned()?
            }
        };
        lane.in_flight.fetch_add(1, Ordering::Relaxed);
        Some(Lane(lane))
    }

    /// Forgets the clients; calls on them go on.
    pub(super) fn renew(&self) {
        self.lanes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(idle: Duration) -> Lanes<usize> {
        let made = AtomicUsize::new(0);
        let limits = Limits {
            per_lane: 2,
            max_lanes: 3,
            idle,
        };
        Lanes::new(limits, move || Some(made.fetch_add(1, Ordering::Relaxed)))
    }

    fn take(lanes: &Lanes<usize>) -> Lane<usize> {
        lanes.take().unwrap()
    }

    #[test]
    fn a_further_client_is_made_before_one_is_overfull() {
        let lanes = lanes(Duration::MAX);
        let taken: Vec<_> = (0..6).map(|_| take(&lanes)).collect();
        assert_eq!(
            taken.iter().map(|lane| **lane).collect::<Vec<_>>(),
            [0, 0, 1, 1, 2, 2]
        );
    }

    #[test]
    fn past_the_last_client_the_least_used_is_taken() {
        let lanes = lanes(Duration::MAX);
        let mut taken: Vec<_> = (0..6).map(|_| take(&lanes)).collect();
        assert_eq!(*take(&lanes), 0);
        taken.remove(2);
        assert_eq!(*take(&lanes), 1);
    }

    #[test]
    fn a_client_given_back_is_used_again_first() {
        let lanes = lanes(Duration::MAX);
        let first = take(&lanes);
        let _second = take(&lanes);
        drop(first);
        assert_eq!(*take(&lanes), 0);
    }

    #[test]
    fn an_unused_client_is_made_anew_and_a_used_one_is_kept() {
        let lanes = lanes(Duration::ZERO);
        let first = take(&lanes);
        assert_eq!(*take(&lanes), 0);
        drop(first);
        assert_eq!(*take(&lanes), 1);
        lanes.renew();
        assert_eq!(*take(&lanes), 2);
    }

    #[test]
    fn where_no_client_can_be_made_there_is_none() {
        let limits = Limits {
            per_lane: 1,
            max_lanes: 1,
            idle: Duration::MAX,
        };
        assert!(Lanes::<usize>::new(limits, || None).take().is_none());
    }
}
