//! Several clients for one host, so that no HTTP/2 connection gets full.
//!
//! One hyper client keeps one HTTP/2 connection a host, and the service allows
//! about 128 streams on each (a comment in the official Python client). What
//! does not fit waits in silence, behind calls that are held for half a minute.
//!
//! A service that allows fewer is found out in two steps. Until the settings of
//! a new connection have arrived only [`FIRST_CALLS`] are sent, because a server
//! refuses what is too much. From then on calls wait on this side, which the
//! caller of [`Lanes`] notices and says by [`Lanes::learn`].

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// Calls on a connection before the server's settings are known.
const FIRST_CALLS: usize = 8;

/// How long calls on a new connection wait at most for the server's settings.
const SETTINGS_PATIENCE: Duration = Duration::from_secs(10);

/// Clients at most, however few calls each may carry.
const MOST_LANES: usize = 256;

/// While it is held, no other call above what was seen is handed over.
pub(super) type Turn = tokio::sync::OwnedMutexGuard<()>;

/// A growing set of equal clients, made when they are needed.
pub(super) struct Lanes<C> {
    lanes: Mutex<Vec<Arc<Counted<C>>>>,
    limits: Limits,
    /// Calls on a client as the host is known to allow; forgotten with the last client.
    learnt: AtomicUsize,
    /// Calls that a connection was seen to carry at once; forgotten likewise.
    carried: AtomicUsize,
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
    /// Those of them that have a stream of the connection.
    open: AtomicUsize,
    /// Whether the server's settings are known, as far as one can tell.
    settled: watch::Sender<bool>,
    /// Held by a call that is more than a connection was seen to carry.
    turn: Arc<tokio::sync::Mutex<()>>,
    used_at: Mutex<Instant>,
}

impl<C> Counted<C> {
    fn new(client: C) -> Arc<Self> {
        Arc::new(Self {
            client,
            in_flight: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            settled: watch::Sender::new(false),
            turn: Arc::default(),
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
pub(super) struct Lane<C> {
    counted: Arc<Counted<C>>,
    /// Calls that were on the client before this one.
    before: usize,
    is_open: bool,
}

impl<C> Lane<C> {
    /// Waits until one more call on the connection is no risk, as long as that makes sense.
    pub(super) async fn admitted(&self) {
        if self.before >= FIRST_CALLS {
            let mut settled = self.counted.settled.subscribe();
            let settled = settled.wait_for(|is_settled| *is_settled);
            let _ = tokio::time::timeout(SETTINGS_PATIENCE, settled).await;
        }
    }

    /// The call has a stream of the connection.
    pub(super) fn opened(&mut self) {
        if !self.is_open {
            self.is_open = true;
            self.counted.open.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn is_settled(&self) -> bool {
        *self.counted.settled.borrow()
    }

    /// The server's settings have arrived, or there is no use in waiting for them.
    pub(super) fn settled(&self) {
        self.counted.settled.send_if_modified(|is_settled| {
            let was_settled = std::mem::replace(is_settled, true);
            !was_settled
        });
    }
}

impl<C> Deref for Lane<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.counted.client
    }
}

impl<C> Drop for Lane<C> {
    fn drop(&mut self) {
        if self.is_open {
            self.counted.open.fetch_sub(1, Ordering::Relaxed);
        }
        *self.counted.used_at() = Instant::now();
        self.counted.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<C> Lanes<C> {
    pub(super) fn new(
        limits: Limits,
        make: impl Fn() -> Option<C> + Send + Sync + 'static,
    ) -> Self {
        Self {
            lanes: Mutex::default(),
            learnt: AtomicUsize::new(limits.per_lane),
            carried: AtomicUsize::new(FIRST_CALLS),
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
        if lanes.is_empty() {
            self.learnt.store(self.limits.per_lane, Ordering::Relaxed);
            self.carried.store(FIRST_CALLS, Ordering::Relaxed);
        }
        let per_lane = self.learnt.load(Ordering::Relaxed);
        let roomy = lanes
            .iter()
            .find(|lane| lane.in_flight() < per_lane)
            .cloned();
        let lane = match roomy {
            Some(lane) => lane,
            None => {
                let more = lanes.len() < self.max_lanes(per_lane);
                if let Some(client) = more.then(|| (self.make)()).flatten() {
                    lanes.push(Counted::new(client));
                }
                lanes.iter().min_by_key(|lane| lane.in_flight()).cloned()?
            }
        };
        let before = lane.in_flight.fetch_add(1, Ordering::Relaxed);
        Some(Lane {
            counted: lane,
            before,
            is_open: false,
        })
    }

    /// A call on `lane` got no stream though others have one, as many as when
    /// the caller last looked (`seen`): no more than those fit. Says whether it
    /// would now get another client.
    pub(super) fn learn(&self, lane: &Lane<C>, seen: &mut usize) -> bool {
        let open = lane.counted.open.load(Ordering::Relaxed);
        if std::mem::replace(seen, open) != open || open == 0 || !lane.is_settled() {
            // There is no connection yet.
            return false;
        }
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let per_lane = self.learnt.load(Ordering::Relaxed).min(open);
        let has_room = lanes.len() < self.max_lanes(per_lane)
            || lanes.iter().any(|other| other.in_flight() < per_lane);
        if has_room {
            self.learnt.store(per_lane, Ordering::Relaxed);
        }
        has_room
    }

    /// Whether the call came on top of what the client's connection carries,
    /// and would now get another one.
    pub(super) fn is_overfull(&self, lane: &Lane<C>) -> bool {
        let per_lane = self.learnt.load(Ordering::Relaxed);
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lane.before >= per_lane
            && (lanes.len() < self.max_lanes(per_lane)
                || lanes.iter().any(|other| other.in_flight() < per_lane))
    }

    /// The turn of a call that is more than a connection was seen to carry.
    ///
    /// One at a time: of several that are handed over together the HTTP library
    /// asks for the bodies before it looks whether their streams fit.
    pub(super) fn turn(&self, lane: &Lane<C>) -> Option<impl Future<Output = Turn> + use<C>> {
        let is_more = lane.before >= self.carried.load(Ordering::Relaxed);
        is_more.then(|| lane.counted.turn.clone().lock_owned())
    }

    /// The connection carries what is open on it now.
    pub(super) fn carries(&self, lane: &Lane<C>) {
        let open = lane.counted.open.load(Ordering::Relaxed);
        self.carried.fetch_max(open, Ordering::Relaxed);
    }

    /// As many calls in all as where the host allows what is expected.
    fn max_lanes(&self, per_lane: usize) -> usize {
        let Limits {
            per_lane: expected,
            max_lanes,
            ..
        } = self.limits;
        (max_lanes * expected / per_lane.max(1)).min(MOST_LANES.max(max_lanes))
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
    fn what_a_connection_was_found_to_carry_holds_until_the_last_client_is_gone() {
        let lanes = lanes(Duration::ZERO);
        let mut first = take(&lanes);
        let second = take(&lanes);
        let mut seen = 0;
        assert!(
            !lanes.learn(&second, &mut seen),
            "there may be no connection yet"
        );
        first.opened();
        first.settled();
        assert!(!lanes.learn(&second, &mut seen), "there are more and more");
        assert!(lanes.learn(&second, &mut seen));
        drop(second);
        let third = take(&lanes);
        assert_eq!(*third, 1, "one call fills a client");
        drop((first, third));
        assert_eq!([take(&lanes), take(&lanes)].map(|lane| *lane), [2, 2]);
    }

    #[test]
    fn fewer_calls_on_a_client_make_more_clients_but_not_without_end() {
        let lanes = lanes(Duration::MAX);
        assert_eq!([2, 1, 0].map(|few| lanes.max_lanes(few)), [3, 6, 6]);
        let limits = Limits {
            per_lane: 96,
            max_lanes: 64,
            idle: Duration::MAX,
        };
        let lanes = Lanes::<usize>::new(limits, || None);
        assert_eq!([96, 48, 1].map(|few| lanes.max_lanes(few)), [64, 128, 256]);
    }

    #[test]
    fn where_every_client_is_full_nothing_is_learnt() {
        let lanes = lanes(Duration::MAX);
        let mut taken: Vec<_> = (0..6).map(|_| take(&lanes)).collect();
        taken.iter_mut().for_each(Lane::opened);
        taken.iter().for_each(Lane::settled);
        assert!(!lanes.learn(&take(&lanes), &mut 2));
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_calls_go_at_once_and_the_next_when_the_settings_are_known() {
        let limits = Limits {
            per_lane: 20,
            max_lanes: 1,
            idle: Duration::MAX,
        };
        let lanes = Lanes::new(limits, || Some(()));
        let taken: Vec<_> = (0..=FIRST_CALLS).map(|_| lanes.take().unwrap()).collect();
        let begun = tokio::time::Instant::now();
        let (last, first) = taken.split_last().unwrap();
        for lane in first {
            lane.admitted().await;
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
        last.admitted().await;
        assert_eq!(begun.elapsed(), SETTINGS_PATIENCE);
        first[3].settled();
        last.admitted().await;
        assert_eq!(begun.elapsed(), SETTINGS_PATIENCE);
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
