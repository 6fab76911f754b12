//! Start, wait, status, terminate, detach.

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::service::Service;
use super::*;
use crate::error::{Code, Killed};

fn running() -> Service {
    Service::new(writes(Output::Stdout, &[(1, "ready\n")]))
}

#[tokio::test(start_paused = true)]
async fn r20_a_start_is_sent_once_without_a_deadline_and_with_its_own_id() {
    let (connection, service) = running().connect().await;
    let process = connection
        .start_process(&start_request(), &Call::default())
        .await
        .unwrap();
    assert_eq!(process.id(), "exec_1");
    assert_eq!(service.requests("/execute").len(), 1);
    assert!(service.started.elapsed() <= seconds(1));
    let id = service.command_id.lock().unwrap().clone().unwrap();
    assert_eq!(uuid::Uuid::parse_str(&id).unwrap().get_version_num(), 7);
    assert_eq!(stdout_first(&process).await, "ready\n");
}

async fn stdout_first(process: &Process) -> String {
    let reader = process.read(Which::Stdout);
    reader.next_batch().await.unwrap().unwrap()[0].text.clone()
}

#[tokio::test(start_paused = true)]
async fn r20_where_the_id_is_the_one_that_was_sent_the_handle_comes_before_the_answer() {
    let mut service = running();
    service.execution_id = None;
    let (connection, service) = service.connect().await;
    let process = connection
        .start_process(&start_request(), &Call::default())
        .await
        .unwrap();
    assert_eq!(
        Some(process.id().to_owned()),
        *service.command_id.lock().unwrap()
    );
    assert!(service.started.elapsed() < Duration::from_millis(100));
    assert_eq!(service.requests("/execute").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn r20_where_the_id_is_another_one_only_the_first_start_looks_for_its_own() {
    let (connection, service) = running().connect().await;
    for looks in [3, 0, 0] {
        let before = service.requests("Get").len();
        let process = connection
            .start_process(&start_request(), &Call::default())
            .await
            .unwrap();
        assert_eq!(process.id(), "exec_1");
        assert_eq!(service.requests("Get").len() - before, looks);
    }
    assert!(service.started.elapsed() <= seconds(3));
    // An answer that never comes is still looked for by the id that was sent.
    let (connection, service) = running()
        .answers("/execute", 502, json!({}))
        .connect()
        .await;
    connection.seen_ids().note("exec_1", "ours");
    let error = connection
        .start_process(&start_request(), &Call::default())
        .await;
    assert_eq!(error.unwrap_err().code(), Code::OutcomeUnknown);
    assert!(!service.requests("Get").is_empty());
}

#[tokio::test(start_paused = true)]
async fn r31_r32_a_start_whose_answer_is_lost_is_looked_for_and_never_sent_again() {
    for (is_our_id, status) in [(true, 502), (true, 408), (false, 502), (false, 408)] {
        let mut service = running().answers("/execute", status, json!({}));
        if is_our_id {
            service.execution_id = None;
        }
        let (connection, service) = service.connect().await;
        let started = connection
            .start_process(&start_request(), &Call::default())
            .await;
        if is_our_id {
            assert_eq!(
                Some(started.unwrap().id().to_owned()),
                *service.command_id.lock().unwrap()
            );
        } else {
            let error = started.unwrap_err();
            assert_eq!(
                (error.code(), error.operation()),
                (Code::OutcomeUnknown, "process_start")
            );
            assert_eq!(error.outcome().submitted, Some(true));
        }
        assert_eq!(service.requests("/execute").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn r31_a_refused_start_is_that_error_and_a_wrong_one_is_not_sent() {
    let (connection, service) = running()
        .answers("/execute", 404, json!({ "message": "no" }))
        .connect()
        .await;
    let error = connection
        .start_process(&start_request(), &Call::default())
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    assert_eq!(error.resource().unwrap().kind, "sandbox");
    let wrong = StartRequest {
        cwd: Some("a\0b".into()),
        ..start_request()
    };
    let error = connection
        .start_process(&wrong, &Call::default())
        .await
        .unwrap_err();
    assert_eq!(
        (error.code(), error.outcome().submitted),
        (Code::InvalidArgument, Some(false))
    );
    assert_eq!(service.requests("/execute").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn r20_a_long_command_travels_as_a_file() {
    let (connection, service) = running()
        .answers("/upload_file", 200, json!({}))
        .connect()
        .await;
    let words = vec!["printf".into(), "x".repeat(130_000)];
    let request = StartRequest {
        command: CommandInput::Arguments(words),
        ..start_request()
    };
    connection
        .start_process(&request, &Call::default())
        .await
        .unwrap();
    assert_eq!(service.requests("upload_file").len(), 1);
    let (connection, _) = running()
        .answers("/upload_file", 502, json!({}))
        .connect()
        .await;
    let error = connection
        .start_process(&request, &Call::default())
        .await
        .unwrap_err();
    assert_eq!(error.outcome().submitted, Some(false), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn r22_wait_is_answered_by_the_poll_that_is_held_when_it_happens() {
    let (connection, service) = running().exits(seconds(70), 4).connect().await;
    let process = open(&connection).await;
    assert_eq!(exit(&process).await, (4, Completeness::Complete));
    assert_eq!(service.started.elapsed(), seconds(70));
    assert_eq!(service.requests("wait_for_status").len(), 3);
    assert_eq!(service.requests("stream").len(), 0, "nobody read");
}

#[tokio::test(start_paused = true)]
async fn b1_an_end_without_an_exit_code_is_no_success() {
    let view = json!({ "execution_id": "exec_1", "status": "completed" });
    let (connection, _) = running()
        .answers("/wait_for_status", 200, view)
        .connect()
        .await;
    let process = open(&connection).await;
    let error = process.wait(&Call::default()).await.unwrap_err();
    assert_eq!(
        (error.code(), error.operation()),
        (Code::Protocol, "process_wait")
    );
}

#[tokio::test(start_paused = true)]
async fn r22_a_wait_survives_trouble_and_reports_a_process_that_is_gone() {
    let trouble = || running().exits(seconds(30), 0);
    let (connection, _) = (0..8)
        .fold(trouble(), |service, _| {
            service.answers("/wait_for_status", 503, json!({}))
        })
        .connect()
        .await;
    assert_eq!(exit(&open(&connection).await).await.0, 0);
    let (connection, _) = trouble()
        .answers("/wait_for_status", 404, json!({}))
        .connect()
        .await;
    let error = open(&connection)
        .await
        .wait(&Call::default())
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    assert_eq!(error.resource().unwrap().kind, "process");
}

#[tokio::test(start_paused = true)]
async fn f7_a_signal_stops_a_wait_and_its_poll() {
    let (connection, service) = running().connect().await;
    let process = open(&connection).await;
    let signal = CancellationToken::new();
    let call = Call::cancelled_by(signal.clone());
    let (waited, ()) = tokio::join!(process.wait(&call), async {
        tokio::time::sleep(seconds(3)).await;
        signal.cancel();
    });
    assert_eq!(waited.unwrap_err().code(), Code::Cancelled);
    tokio::time::sleep(seconds(100)).await;
    assert_eq!(service.requests("wait_for_status").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn r20_status_tells_running_from_exited() {
    let (connection, _) = running().exits(seconds(2), 9).connect().await;
    let process = open(&connection).await;
    let status = process.status(&Call::default()).await.unwrap();
    assert_eq!((status.state, status.exit_code), ("running", None));
    tokio::time::sleep(seconds(3)).await;
    let status = process.status(&Call::default()).await.unwrap();
    assert_eq!((status.state, status.exit_code), ("exited", Some(9)));
}

#[tokio::test(start_paused = true)]
async fn r23_terminate_kills_once_and_resolves_when_the_end_is_reported() {
    let (connection, service) = running().connect().await;
    let process = open(&connection).await;
    let exit = process.terminate(&Call::default()).await.unwrap();
    assert_eq!(exit.exit_code, 137);
    assert_eq!(service.started.elapsed(), seconds(1));
    assert_eq!(service.requests("/kill").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn r23_r29_a_kill_whose_answer_is_lost_is_observed_and_not_sent_again() {
    let (connection, service) = running()
        .exits(seconds(20), 143)
        .answers("/kill", 502, json!({}))
        .connect()
        .await;
    let exit = open(&connection)
        .await
        .terminate(&Call::default())
        .await
        .unwrap();
    assert_eq!(exit.exit_code, 143);
    assert_eq!(service.requests("/kill").len(), 1);

    let (connection, _) = running().answers("/kill", 502, json!({})).connect().await;
    let error = open(&connection)
        .await
        .terminate(&Call::default())
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::OutcomeUnknown);
    assert_eq!(error.outcome().killed, Some(Killed::Unknown));
    assert_eq!(error.outcome().process_id.as_deref(), Some("exec_1"));

    let (connection, _) = running().answers("/kill", 404, json!({})).connect().await;
    let error = open(&connection)
        .await
        .terminate(&Call::default())
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
}

#[tokio::test(start_paused = true)]
async fn r23_r31_a_kill_that_was_taken_is_not_refused_where_its_end_cannot_be_asked_for() {
    for status in [400, 401, 403, 404, 409] {
        let (connection, service) = running()
            .answers("/wait_for_status", status, json!({}))
            .connect()
            .await;
        let error = open(&connection)
            .await
            .terminate(&Call::default())
            .await
            .unwrap_err();
        assert_eq!(error.code(), Code::OutcomeUnknown, "{status}");
        assert_eq!(error.outcome().submitted, Some(true));
        assert_eq!(error.outcome().killed, Some(Killed::Unknown));
        assert_eq!(service.requests("/kill").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn r23_after_a_detach_nothing_of_ours_runs_and_the_process_does() {
    let (connection, service) = running().connect().await;
    let process = open(&connection).await;
    let reader = process.read(Which::Both);
    reader.next_batch().await.unwrap();
    let call = Call::default();
    let (waited, read, ()) = tokio::join!(process.wait(&call), reader.next_batch(), async {
        tokio::time::sleep(seconds(1)).await;
        process.detach();
    });
    assert_eq!(waited.unwrap_err().code(), Code::Closed);
    assert_eq!(read.unwrap(), None);
    service.journal.lock().unwrap().clear();
    tokio::time::sleep(seconds(200)).await;
    assert_eq!(service.requests(""), [""; 0]);
    assert_eq!(service.open_streams(), 0);
    assert!(service.exit.borrow().is_none());
    assert_eq!(
        open(&connection).await.status(&call).await.unwrap().state,
        "running"
    );
}

#[tokio::test(start_paused = true)]
async fn v27_closing_the_connection_ends_waits_and_readers() {
    let (connection, service) = running().connect().await;
    let process = open(&connection).await;
    let reader = process.read(Which::Stdout);
    reader.next_batch().await.unwrap();
    let call = Call::default();
    let (waited, read, ()) = tokio::join!(process.wait(&call), reader.next_batch(), async {
        connection.close();
    });
    assert_eq!(waited.unwrap_err().code(), Code::Closed);
    assert_eq!(read.unwrap_err().code(), Code::Closed);
    assert_eq!(service.open_streams(), 0);
    let late = process.read(Which::Stdout).next_batch().await;
    assert_eq!(late.unwrap_err().code(), Code::Closed);
}

#[tokio::test(start_paused = true)]
async fn f9_a_forgotten_handle_leaves_nothing_behind() {
    let (connection, service) = running().connect().await;
    let process = open(&connection).await;
    let reader = process.read(Which::Both);
    reader.next_batch().await.unwrap();
    drop(process);
    drop(reader);
    tokio::time::sleep(Duration::from_millis(1)).await;
    service.journal.lock().unwrap().clear();
    tokio::time::sleep(seconds(200)).await;
    assert_eq!(service.requests(""), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn r23_v17_a_process_and_its_request_show_no_command_and_no_environment() {
    let (connection, _) = running().connect().await;
    let mut request = start_request();
    request.env.insert("TOKEN".into(), "swordfish".into());
    let process = open(&connection).await;
    let shown = format!("{request:?} {process:?} {:?}", process.read(Which::Stdout));
    assert!(
        !shown.contains("swordfish") && !shown.contains("true"),
        "{shown}"
    );
}

#[tokio::test(start_paused = true)]
async fn r20_e3_a_command_that_the_wrapper_did_not_start_is_a_typed_error() {
    let request = StartRequest {
        cwd: Some("/nope".into()),
        ..start_request()
    };
    let mut service = running().exits(seconds(0), 125);
    service.refusal = Some("cwd:missing");
    let (connection, _) = service.connect().await;
    let error = connection
        .start_process(&request, &Call::default())
        .await
        .unwrap_err();
    assert_eq!(
        (error.code(), error.operation()),
        (Code::NotFound, "process_start")
    );
    assert_eq!(error.resource().unwrap().kind, "working directory");
    assert_eq!(error.outcome().submitted, Some(true));
}
