//! The deny-all policy behind `network: "blocked"`.
//!
//! Found by its name, made where there is none, and checked again before each
//! create and restore: the account's other users can change it. It is never
//! edited here, because what an edit does to running Devboxes is unknown. In
//! the steady state a check is one request.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;

use super::{Call, Connection};
use crate::api::answer::parse;
use crate::api::policies;
use crate::error::{Code, Error, Result};
use crate::wire::policies::{CreateNetworkPolicy, NetworkPolicy, NetworkPolicyPage};

/// The name of the policy, one an account.
pub(super) const NAME: &str = "beachside-blocked";

/// Policies on a page of the search, and pages at most: an account has at most
/// 100 policies (Runloop's documentation).
const PAGE: u32 = 100;
const MAX_PAGES: u32 = 20;

/// How long a check waits before it starts, so that creates that a program
/// calls in one go are there already and share it: a fraction of a request.
const GATHER: Duration = Duration::from_millis(1);

/// How long a policy that somebody just made may be missing from the list.
/// Whether the service's lists lag is unknown.
const VISIBLE_AFTER: Duration = Duration::from_secs(4);

/// What the checks of a connection share.
#[derive(Debug, Default)]
pub(super) struct PolicyChecks {
    /// Held during a check. Creates that arrive together so share one check,
    /// which started after all of them were called.
    last: Mutex<Last>,
    started: AtomicU64,
    /// Ids under which it was found deny-all, the latest last. More than one
    /// only where somebody deleted it.
    ids: std::sync::Mutex<Vec<String>>,
}

/// The last check that ended: its number and what it found.
#[derive(Debug, Default)]
struct Last {
    number: u64,
    found: Option<Result<String>>,
}

impl PolicyChecks {
    /// Whether this is the id of the policy as this connection found it.
    pub(super) fn is_blocked(&self, policy_id: &str) -> bool {
        self.ids().iter().any(|id| id == policy_id)
    }

    fn latest(&self) -> Option<String> {
        self.ids().last().cloned()
    }

    fn found(&self, id: &str) {
        let mut ids = self.ids();
        ids.retain(|known| known != id);
        ids.push(id.to_owned());
    }

    fn ids(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// The id of a policy that denies everything, proven by a check that
    /// started after this call.
    pub(super) async fn blocked_policy(
        &self,
        operation: &'static str,
        call: &Call,
    ) -> Result<String> {
        let checks = self.policy_checks();
        let arrived = checks.started.load(Ordering::SeqCst);
        let mut last = self
            .until_stopped(call, operation, checks.last.lock())
            .await?;
        if last.number > arrived
            && let Some(found) = &last.found
        {
            return found.clone();
        }
        self.until_stopped(call, operation, tokio::time::sleep(GATHER))
            .await?;
        let number = checks.started.fetch_add(1, Ordering::SeqCst) + 1;
        let found = self.check_policy(operation, call).await;
        // What stopped this caller is nothing to the others.
        let is_own = matches!(&found, Err(error) if matches!(error.code(), Code::Cancelled));
        if !is_own {
            *last = Last {
                number,
                found: Some(found.clone()),
            };
        }
        found
    }

    async fn check_policy(&self, operation: &'static str, call: &Call) -> Result<String> {
        let checks = self.policy_checks();
        if let Some(id) = checks.latest()
            && let Some(policy) = self.policy_by_id(operation, &id, call).await?
        {
            return deny_all(&policy);
        }
        let policy = match self.policy_by_name(operation, call).await? {
            Some(policy) => policy,
            None => self.make_policy(operation, call).await?,
        };
        let id = deny_all(&policy)?;
        checks.found(&id);
        Ok(id)
    }

    /// `None` where it is gone or carries another name by now.
    async fn policy_by_id(
        &self,
        operation: &'static str,
        id: &str,
        call: &Call,
    ) -> Result<Option<NetworkPolicy>> {
        let request = policies::get(id);
        let context = self
            .context(operation, &request)
            .about("network policy", id);
        let policy: NetworkPolicy = match self.read(&request, &context, call).await {
            Ok(answer) => parse(&answer, &context)?,
            Err(error) if error.code() == Code::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(policy).filter(|policy| policy.id == id && policy.name == NAME))
    }

    /// The policy of this name, one that denies everything before one that does
    /// not: newer clients say that names can be shared.
    async fn policy_by_name(
        &self,
        operation: &'static str,
        call: &Call,
    ) -> Result<Option<NetworkPolicy>> {
        let mut after: Option<String> = None;
        let mut opened = None;
        for _ in 0..MAX_PAGES {
            let request = policies::find(NAME, PAGE, after.as_deref());
            let context = self
                .context(operation, &request)
                .about("network policy", NAME);
            let answer = self.read(&request, &context, call).await?;
            let page: NetworkPolicyPage = parse(&answer, &context)?;
            let next = page.network_policies.last().map(|policy| policy.id.clone());
            for policy in page.network_policies {
                if policy.name == NAME {
                    if policies::opening(&policy).is_none() {
                        return Ok(Some(policy));
                    }
                    opened.get_or_insert(policy);
                }
            }
            // A server that repeats a page would be asked for ever.
            if page.has_more != Some(true) || next.is_none() || next == after {
                break;
            }
            after = next;
        }
        Ok(opened)
    }

    /// Creates the policy. Where that is refused or its answer is lost, another
    /// process, or this very request, may have made it: the name is unique, so
    /// a look tells, or a second one where the list lags.
    async fn make_policy(&self, operation: &'static str, call: &Call) -> Result<NetworkPolicy> {
        let request = policies::create(&CreateNetworkPolicy {
            name: NAME,
            description: "Denies all egress. Kept by Beachside; do not edit.",
            allow_all: false,
            allowed_hostnames: &[],
            allow_devbox_to_devbox: false,
            allow_agent_gateway: false,
            allow_mcp_gateway: false,
        })?;
        let context = self
            .context(operation, &request)
            .about("network policy", NAME);
        let problem = match self.submit(request, &context, call).await {
            Ok(answer) => match parse(&answer, &context) {
                Ok(policy) => return Ok(policy),
                Err(problem) => problem,
            },
            Err(problem) => problem,
        };
        match problem.code() {
            Code::Rejected | Code::Conflict | Code::OutcomeUnknown
                if self.stopped(call, operation).is_none() =>
            {
                if let Some(found) = self.policy_by_name(operation, call).await? {
                    return Ok(found);
                }
                self.until_stopped(call, operation, tokio::time::sleep(VISIBLE_AFTER))
                    .await?;
                let found = self.policy_by_name(operation, call).await?;
                found.ok_or_else(|| not_made(&problem))
            }
            Code::OutcomeUnknown => Err(not_made(&problem)),
            _ => Err(problem),
        }
    }
}

/// The id of a policy that denies everything.
fn deny_all(policy: &NetworkPolicy) -> Result<String> {
    if let Some(opening) = policies::opening(policy) {
        let message = format!(
            "the network policy {NAME:?} no longer denies everything ({opening}); \
             restore or delete it, or connect with network: \"internet\""
        );
        return Err(Error::new(Code::Conflict, message).with_resource("network policy", NAME));
    }
    if policy.id.is_empty() {
        return Err(Error::protocol(
            "Runloop reports a network policy without an id",
        ));
    }
    Ok(policy.id.clone())
}

/// The policy's fate is unknown or it was refused. It denies everything and has
/// a name of its own, so making it again is harmless.
fn not_made(problem: &Error) -> Error {
    let message = format!("the network policy {NAME:?} could not be made: {problem}");
    let code = match problem.code() {
        Code::OutcomeUnknown => Code::Unavailable,
        code => code,
    };
    let error = Error::new(code, message).with_resource("network policy", NAME);
    match problem.status() {
        Some(status) => error.with_answer(
            status,
            problem.request_id().map(str::to_owned),
            problem.retry_after_seconds(),
        ),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::connect;
    use super::*;
    use crate::transport::scripted::Step;

    const OPERATION: &str = "sandbox_create";
    const LOOK: &str = "Get /v1/network-policies?name=beachside-blocked&limit=100";
    const MAKE: &str = "Post /v1/network-policies";
    const CHECK: &str = "Get /v1/network-policies/np_1";

    fn closed() -> Value {
        json!({ "allow_all": false, "allowed_hostnames": [] })
    }

    fn open() -> Value {
        json!({ "allow_all": false, "allowed_hostnames": ["x.com"] })
    }

    fn view(id: &str, name: &str, egress: Value) -> Value {
        json!({ "id": id, "name": name, "egress": egress })
    }

    fn one(id: &str, egress: Value) -> Step {
        Step::json(200, &view(id, NAME, egress).to_string())
    }

    fn page(policies: &[Value], has_more: bool) -> Step {
        Step::json(
            200,
            &json!({ "network_policies": policies, "has_more": has_more }).to_string(),
        )
    }

    fn found() -> Step {
        page(&[view("np_1", NAME, closed())], false)
    }

    fn nothing() -> Step {
        page(&[], false)
    }

    fn taken() -> Step {
        Step::json(400, r#"{"message":"name already exists"}"#)
    }

    async fn check(steps: Vec<Step>) -> (Result<String>, Vec<String>) {
        let (connection, script) = connect(steps).await;
        let result = connection.blocked_policy(OPERATION, &Call::default()).await;
        (result, script.lines())
    }

    #[tokio::test(start_paused = true)]
    async fn r5_the_policy_is_made_on_first_use() {
        let (connection, script) = connect([nothing(), one("np_1", closed())]).await;
        let id = connection
            .blocked_policy(OPERATION, &Call::default())
            .await
            .unwrap();
        assert_eq!(id, "np_1");
        assert_eq!(script.lines(), [LOOK, MAKE]);
        let body = script.json(1);
        assert_eq!(
            (&body["name"], &body["allow_all"]),
            (&json!(NAME), &json!(false))
        );
        assert_eq!(body["allowed_hostnames"], json!([]));
    }

    #[tokio::test(start_paused = true)]
    async fn r5_an_existing_policy_is_found_and_afterwards_checked_with_one_request() {
        let steps = [found(), one("np_1", closed()), one("np_1", closed())];
        let (connection, script) = connect(steps).await;
        for _ in 0..3 {
            connection
                .blocked_policy(OPERATION, &Call::default())
                .await
                .unwrap();
        }
        assert_eq!(script.lines(), [LOOK, CHECK, CHECK]);
    }

    #[tokio::test(start_paused = true)]
    async fn r5_partial_name_matches_are_paged_over() {
        let near = |number: usize| view(&format!("np_x{number}"), "beachside-blocked-2", open());
        let steps = vec![
            page(&[near(1), near(2)], true),
            page(&[near(3), view("np_1", NAME, closed())], true),
        ];
        let (result, lines) = check(steps).await;
        assert_eq!(result.unwrap(), "np_1");
        assert_eq!(
            lines,
            [LOOK.to_owned(), format!("{LOOK}&starting_after=np_x2")]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn r5_of_two_policies_of_the_name_one_that_denies_everything_is_taken() {
        let steps = vec![
            page(&[view("np_2", NAME, open())], true),
            page(&[view("np_1", NAME, closed())], false),
        ];
        assert_eq!(check(steps).await.0.unwrap(), "np_1");
    }

    #[tokio::test(start_paused = true)]
    async fn r5_a_lost_race_is_resolved_by_a_look() {
        for lost in [
            taken(),
            Step::json(409, ""),
            Step::reset(),
            Step::json(502, ""),
        ] {
            let (result, lines) = check(vec![nothing(), lost, found()]).await;
            assert_eq!(result.unwrap(), "np_1");
            assert_eq!(lines, [LOOK, MAKE, LOOK]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn r5_a_policy_that_is_no_longer_deny_all_is_refused_wherever_it_is_seen() {
        let opened = || page(&[view("np_1", NAME, open())], false);
        for steps in [
            vec![opened()],
            vec![nothing(), one("np_1", open())],
            vec![nothing(), taken(), opened()],
        ] {
            let (result, _) = check(steps).await;
            let error = result.unwrap_err();
            assert_eq!(error.code(), Code::Conflict);
            assert!(
                error.message().contains("egress.allowed_hostnames is set"),
                "{error}"
            );
        }
        let (connection, _) = connect([found(), one("np_1", open())]).await;
        let call = Call::default();
        connection.blocked_policy(OPERATION, &call).await.unwrap();
        assert!(connection.blocked_policy(OPERATION, &call).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_policy_that_was_deleted_or_renamed_is_looked_for_again() {
        let renamed = Step::json(200, &view("np_1", "other", closed()).to_string());
        for gone in [Step::json(404, ""), renamed] {
            let again = page(&[view("np_2", NAME, closed())], false);
            let (connection, script) = connect([found(), gone, again]).await;
            let call = Call::default();
            assert_eq!(
                connection.blocked_policy(OPERATION, &call).await.unwrap(),
                "np_1"
            );
            assert_eq!(
                connection.blocked_policy(OPERATION, &call).await.unwrap(),
                "np_2"
            );
            assert_eq!(script.lines(), [LOOK, CHECK, LOOK]);
            let checks = connection.policy_checks();
            assert!(checks.is_blocked("np_1") && checks.is_blocked("np_2"));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_policy_that_cannot_be_made_or_found_is_a_typed_error() {
        for (steps, code) in [
            (
                vec![nothing(), taken(), nothing(), nothing()],
                Code::Rejected,
            ),
            (
                vec![nothing(), Step::reset(), nothing(), nothing()],
                Code::Unavailable,
            ),
            (vec![nothing(), Step::refused()], Code::Unavailable),
            (vec![nothing(), Step::json(403, "")], Code::PermissionDenied),
            (vec![nothing(), Step::json(429, "")], Code::RateLimited),
            (vec![Step::json(401, "")], Code::Unauthenticated),
            (vec![Step::json(200, "<html>")], Code::Protocol),
        ] {
            let (result, _) = check(steps).await;
            assert_eq!(result.unwrap_err().code(), code);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a7_a_policy_of_another_process_that_the_list_shows_late_is_waited_for() {
        let conflict = || Step::json(409, "");
        for lost in [taken(), conflict(), Step::reset()] {
            let (result, lines) = check(vec![nothing(), lost, nothing(), found()]).await;
            assert_eq!(result.unwrap(), "np_1");
            assert_eq!(lines, [LOOK, MAKE, LOOK, LOOK]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn r5_creates_that_are_called_together_cost_one_check() {
        let (connection, script) = connect([found(), one("np_1", closed())]).await;
        let call = Call::default();
        for lines in [[LOOK].as_slice(), &[LOOK, CHECK]] {
            let together = (0..4).map(|_| connection.blocked_policy(OPERATION, &call));
            futures::future::try_join_all(together).await.unwrap();
            assert_eq!(script.lines(), lines);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn r5_a_check_that_started_before_a_create_was_called_is_not_enough_for_it() {
        let slow = |step: Step| step.after(std::time::Duration::from_secs(1));
        let steps = [slow(found()), slow(one("np_1", closed()))];
        let (connection, script) = connect(steps).await;
        let call = Call::default();
        let together = (0..20).map(|_| connection.blocked_policy(OPERATION, &call));
        let late = async {
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
            let late = (0..20).map(|_| connection.blocked_policy(OPERATION, &call));
            futures::future::join_all(late).await
        };
        let (first, second) = tokio::join!(futures::future::join_all(together), late);
        assert!(
            first
                .iter()
                .chain(&second)
                .all(|result| result.as_deref().is_ok_and(|id| id == "np_1"))
        );
        assert_eq!(script.lines(), [LOOK, CHECK]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_stops_takes_no_check_away_from_the_others() {
        let (connection, script) = connect([Step::Hang, found()]).await;
        let (first, second) = (Call::default(), Call::default());
        let stopping = connection.blocked_policy(OPERATION, &first);
        let waiting = connection.blocked_policy(OPERATION, &second);
        let stop = async {
            while script.seen().is_empty() {
                tokio::time::sleep(GATHER).await;
            }
            first.cancel.cancel();
        };
        let (stopped, waited, ()) = tokio::join!(stopping, waiting, stop);
        assert_eq!(stopped.unwrap_err().code(), Code::Cancelled);
        assert_eq!(waited.unwrap(), "np_1");
    }
}
