//! Reading: reopening, ends, bounds.

use super::service::{Behaviour, Service};
use super::*;
use crate::adapter::processes::OutputPiece;
use crate::adapter::processes::buffer::MAX_HELD_BYTES;
use crate::error::Code;
use crate::sse::OffsetMode;
use tokio::time::Instant;

const TEXT: &[(u64, &str)] = &[(1, "one\n"), (2, "twé\n"), (3, "three\n"), (4, "four\n")];
const WHOLE: &str = "one\ntwé\nthree\nfour\n";

fn service() -> Service {
    Service::new(writes(Output::Stdout, TEXT)).exits(seconds(5), 0)
}

#[tokio::test(start_paused = true)]
async fn r20_r22_output_comes_as_it_is_written_and_the_exit_from_the_poll() {
    let (connection, service) = service().connect().await;
    let process = open(&connection).await;
    let reader = process.read(Which::Stdout);
    for (at, text) in TEXT {
        let pieces = reader.next_batch().await.unwrap().unwrap();
        assert_eq!(pieces[0].text, *text);
        assert_eq!(service.started.elapsed(), seconds(*at));
    }
    assert_eq!(reader.next_batch().await.unwrap(), None);
    assert_eq!(exit(&process).await, (0, Completeness::Complete));
    assert_eq!(service.requests("wait_for_status").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn r21_d13_every_way_to_lose_a_connection_is_survived() {
    for mode in [OffsetMode::Start, OffsetMode::End] {
        for lost in [
            Behaviour::Refused(503, None),
            Behaviour::Refused(429, Some(1.0)),
            Behaviour::Refused(408, None),
            Behaviour::Reset,
            Behaviour::CutClean(0),
            Behaviour::CutClean(2),
            Behaviour::Broken(0),
            Behaviour::Broken(3),
            Behaviour::ErrorEvent(1, 408),
            Behaviour::ErrorEvent(1, 503),
            Behaviour::ErrorEvent(0, 429),
        ] {
            let mut service = service().behaves([lost.clone(), lost.clone(), lost.clone()]);
            service.mode = mode;
            let (connection, _) = service.connect().await;
            let process = open(&connection).await;
            assert_eq!(stdout(&process).await, WHOLE, "{lost:?} {mode:?}");
            assert_eq!(
                exit(&process).await,
                (0, Completeness::Complete),
                "{lost:?} {mode:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn r21_a_retry_after_is_waited_for() {
    let (connection, service) = service()
        .behaves([Behaviour::Refused(429, Some(2.5))])
        .connect()
        .await;
    let process = open(&connection).await;
    let reader = process.read(Which::Stdout);
    reader.next_batch().await.unwrap();
    assert_eq!(service.started.elapsed(), Duration::from_millis(2500));
}

#[tokio::test(start_paused = true)]
async fn b1_d6_an_early_end_after_the_exit_is_no_end() {
    for cut in [Behaviour::CutClean(0), Behaviour::CutClean(1)] {
        let service = Service::new(writes(Output::Stdout, TEXT)).exits(seconds(0), 0);
        let (connection, _) = service.behaves([cut.clone(), cut]).connect().await;
        tokio::time::advance(seconds(6)).await;
        let process = open(&connection).await;
        assert_eq!(stdout(&process).await, WHOLE);
        assert_eq!(exit(&process).await, (0, Completeness::Complete));
    }
    // The view of the exit shows that something is missing to the very end.
    let service = Service::new(writes(Output::Stdout, TEXT)).exits(seconds(0), 0);
    let cuts = std::iter::repeat_n(Behaviour::CutClean(0), 1000);
    let (connection, service) = service.behaves(cuts).connect().await;
    tokio::time::advance(seconds(6)).await;
    let process = open(&connection).await;
    assert_eq!(stdout(&process).await, "");
    assert_eq!(exit(&process).await, (0, Completeness::Incomplete));
    assert_eq!(service.started.elapsed().as_secs(), 16);
}

#[tokio::test(start_paused = true)]
async fn c1_a_tail_that_comes_after_the_exit_is_read() {
    let late = Behaviour::LateTail(seconds(3));
    let (connection, service) = service().behaves([late]).connect().await;
    let process = open(&connection).await;
    let reader = process.read(Which::Stdout);
    let (text, (code, output)) = tokio::join!(all(&reader), exit(&process));
    assert_eq!(
        (text.unwrap().as_str(), code, output),
        (WHOLE, 0, Completeness::Complete)
    );
    assert_eq!(service.started.elapsed(), seconds(8));
}

#[tokio::test(start_paused = true)]
async fn r22_a_stream_that_is_not_closed_ten_seconds_after_the_exit_is_incomplete() {
    let (connection, service) = service().behaves([Behaviour::StaysOpen]).connect().await;
    let process = open(&connection).await;
    let reader = process.read(Which::Stdout);
    let (text, exit) = tokio::join!(all(&reader), exit(&process));
    assert_eq!(text.unwrap(), WHOLE);
    assert_eq!(exit, (0, Completeness::Incomplete));
    assert_eq!(service.started.elapsed(), seconds(15));
    assert_eq!(service.open_streams(), 0);
}

#[tokio::test(start_paused = true)]
async fn r22_a_reader_that_was_made_and_not_used_counts_until_it_is_cancelled() {
    let (connection, service) = service().connect().await;
    let process = open(&connection).await;
    let reader = process.read(Which::Both);
    assert_eq!(exit(&process).await, (0, Completeness::Incomplete));
    assert_eq!(service.started.elapsed(), seconds(15));
    reader.cancel();
    assert_eq!(exit(&process).await, (0, Completeness::Complete));
    assert_eq!(reader.next_batch().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn r22_the_tail_is_asked_for_until_ten_seconds_have_passed() {
    let refusals = std::iter::repeat_n(Behaviour::Refused(503, None), 500);
    let (connection, service) = service().behaves(refusals).connect().await;
    let process = open(&connection).await;
    let reader = process.read(Which::Stdout);
    let (text, exit) = tokio::join!(all(&reader), exit(&process));
    assert_eq!(
        (text.unwrap().as_str(), exit),
        ("", (0, Completeness::Incomplete))
    );
    assert_eq!(service.started.elapsed(), seconds(15));
}

#[tokio::test(start_paused = true)]
async fn r21_a_day_of_idle_cuts_ends_with_every_byte() {
    let day = 24 * 60 * 60;
    let mut service = Service::new(
        (0..24)
            .map(|hour| {
                (
                    seconds(hour * 3600 + 7),
                    Output::Stdout,
                    format!("{hour:04}\n"),
                )
            })
            .collect(),
    )
    .exits(seconds(day), 0);
    service.idle = seconds(60);
    let (connection, service) = service.connect().await;
    let process = open(&connection).await;
    let text = stdout(&process).await;
    assert_eq!(text.len(), 24 * 5);
    assert_eq!(exit(&process).await, (0, Completeness::Complete));
    assert_eq!(service.started.elapsed().as_secs(), day);
    let opened = service.requests("stream_stdout").len();
    assert!(
        (1400..1500).contains(&opened),
        "{opened} connections, one for each cut"
    );
}

#[tokio::test(start_paused = true)]
async fn r21_a_service_that_closes_at_once_is_not_asked_in_a_busy_loop() {
    let cuts = std::iter::repeat_n(Behaviour::CutClean(0), 10_000);
    let (connection, service) = service()
        .exits(seconds(60), 0)
        .behaves(cuts)
        .connect()
        .await;
    let process = open(&connection).await;
    let _text = stdout(&process).await;
    assert!(service.requests("stream_stdout").len() < 40);
}

#[tokio::test(start_paused = true)]
async fn d13_a_stream_that_is_refused_for_good_is_a_typed_error_behind_its_text() {
    for (refused, code) in [
        (Behaviour::Refused(404, None), Code::NotFound),
        (Behaviour::Refused(401, None), Code::Unauthenticated),
        (Behaviour::ErrorEvent(0, 404), Code::NotFound),
        (Behaviour::Raw("data: nonsense\n\n"), Code::Protocol),
    ] {
        let script = [Behaviour::CutClean(1), refused.clone()];
        let (connection, _) = service().behaves(script).connect().await;
        let process = open(&connection).await;
        let reader = process.read(Which::Stdout);
        assert_eq!(reader.next_batch().await.unwrap().unwrap()[0].text, "one\n");
        let error = reader.next_batch().await.unwrap_err();
        assert_eq!(
            (error.code(), error.operation()),
            (code, "process_read"),
            "{refused:?}"
        );
        assert_eq!(reader.next_batch().await.unwrap(), None, "once");
        assert_eq!(exit(&process).await, (0, Completeness::Incomplete));
    }
}

#[tokio::test(start_paused = true)]
async fn r21_a_service_out_of_reach_for_a_minute_is_given_up() {
    let refusals = std::iter::repeat_n(Behaviour::Refused(503, None), 1000);
    let (connection, service) = service()
        .exits(seconds(600), 0)
        .behaves(refusals)
        .connect()
        .await;
    let process = open(&connection).await;
    let error = all(&process.read(Which::Stdout)).await.unwrap_err();
    assert_eq!(
        (error.code(), error.status()),
        (Code::Unavailable, Some(503))
    );
    let took = service.started.elapsed();
    assert!((seconds(60)..seconds(70)).contains(&took), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn r20_both_streams_come_in_the_order_of_arrival_and_each_by_itself() {
    let mut written = writes(Output::Stdout, TEXT);
    written.push((Duration::from_millis(2500), Output::Stderr, "oops\n".into()));
    let (connection, _) = Service::new(written).exits(seconds(5), 3).connect().await;
    let process = open(&connection).await;
    let (both, stderr) = (process.read(Which::Both), process.read(Which::Stderr));
    let mut seen = Vec::new();
    while let Some(pieces) = both.next_batch().await.unwrap() {
        seen.extend(pieces.into_iter().map(|piece| (piece.output, piece.text)));
    }
    let order: Vec<_> = seen
        .iter()
        .map(|(output, text)| (*output, text.as_str()))
        .collect();
    assert_eq!(
        order,
        [
            (Output::Stdout, "one\n"),
            (Output::Stdout, "twé\n"),
            (Output::Stderr, "oops\n"),
            (Output::Stdout, "three\n"),
            (Output::Stdout, "four\n"),
        ]
    );
    assert_eq!(all(&stderr).await.unwrap(), "oops\n");
    assert_eq!(exit(&process).await, (3, Completeness::Complete));
}

#[tokio::test(start_paused = true)]
async fn r20_two_readers_of_one_stream_each_get_all_of_it() {
    let (connection, _) = service().connect().await;
    let process = open(&connection).await;
    let (first, second) = (process.read(Which::Stdout), process.read(Which::Stdout));
    first.next_batch().await.unwrap();
    let (first, second) = tokio::join!(all(&first), all(&second));
    assert_eq!(
        (first.unwrap().as_str(), second.unwrap().as_str()),
        (&WHOLE[4..], WHOLE)
    );
    assert_eq!(stdout(&process).await, WHOLE, "and after the end");
}

#[tokio::test(start_paused = true)]
async fn c1_a_slow_reader_holds_a_bounded_amount_and_loses_nothing() {
    let chunk = "x".repeat(64 * 1024);
    let written = (0..100)
        .map(|_| (seconds(1), Output::Stdout, chunk.clone()))
        .collect();
    let (connection, service) = Service::new(written).exits(seconds(2), 0).connect().await;
    let process = open(&connection).await;
    let reader = process.read(Which::Both);
    let size = |pieces: &[OutputPiece]| pieces.iter().map(|piece| piece.text.len()).sum::<usize>();
    let mut total = size(&reader.next_batch().await.unwrap().unwrap());
    // Long after the exit it still waits for its reader, and wait() does not.
    assert_eq!(exit(&process).await, (0, Completeness::Incomplete));
    tokio::time::sleep(seconds(100)).await;
    while let Some(pieces) = reader.next_batch().await.unwrap() {
        let batch = size(&pieces);
        assert!(batch <= MAX_HELD_BYTES + chunk.len(), "{batch}");
        total += batch;
        tokio::time::sleep(seconds(3)).await;
    }
    assert_eq!(total, 100 * chunk.len());
    assert_eq!(exit(&process).await, (0, Completeness::Complete));
    assert!(service.started.elapsed() > seconds(100));
}

#[tokio::test(start_paused = true)]
async fn c1_a_stream_that_nobody_takes_holds_no_other_back() {
    let mut written = writes(Output::Stderr, &[(2, "err\n")]);
    written.extend((0..100).map(|_| (seconds(1), Output::Stdout, "x".repeat(64 * 1024))));
    let (connection, _) = Service::new(written).exits(seconds(3), 0).connect().await;
    let process = open(&connection).await;
    let (stuck, stderr) = (process.read(Which::Stdout), process.read(Which::Stderr));
    stuck.next_batch().await.unwrap();
    assert_eq!(all(&stderr).await.unwrap(), "err\n");
}

#[tokio::test(start_paused = true)]
async fn l8_f7_leaving_a_reader_ends_its_connections_and_its_pending_calls() {
    let (connection, service) = service().exits(seconds(600), 0).connect().await;
    let process = open(&connection).await;
    let reader = process.read(Which::Both);
    reader.next_batch().await.unwrap();
    while let Ok(Ok(Some(_))) = tokio::time::timeout(seconds(10), reader.next_batch()).await {}
    assert_eq!(service.open_streams(), 2);
    let before = Instant::now();
    let (pending, ()) = tokio::join!(reader.next_batch(), async { reader.cancel() });
    assert_eq!(pending.unwrap(), None);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(service.open_streams(), 0);
    assert!(before.elapsed() < Duration::from_millis(100));
    let polls = service.requests("wait_for_status").len();
    tokio::time::sleep(seconds(100)).await;
    assert_eq!(
        service.requests("wait_for_status").len(),
        polls,
        "and the poll for the exit"
    );

    let reader = process.read(Which::Stdout);
    reader.next_batch().await.unwrap();
    drop(reader);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(service.open_streams(), 0, "a reader that is forgotten too");
}

#[tokio::test(start_paused = true)]
async fn r20_calls_of_one_reader_are_answered_in_their_order() {
    let (connection, _) = service().connect().await;
    let process = open(&connection).await;
    let reader = process.read(Which::Stdout);
    let text = |batch: Result<Option<Vec<OutputPiece>>>| {
        batch
            .unwrap()
            .map(|pieces| pieces[0].text.clone())
            .unwrap_or_default()
    };
    let (first, second, third) = tokio::join!(
        reader.next_batch(),
        reader.next_batch(),
        reader.next_batch()
    );
    assert_eq!(
        [text(first), text(second), text(third)],
        ["one\n", "twé\n", "three\n"]
    );
}

#[tokio::test(start_paused = true)]
async fn r21_f9_another_handle_goes_on_where_one_stopped() {
    for mode in [OffsetMode::Start, OffsetMode::End] {
        let mut service = service();
        service.mode = mode;
        let (connection, _) = service.connect().await;
        let process = open(&connection).await;
        let reader = process.read(Which::Stdout);
        assert_eq!(process.offsets(), [0, 0]);
        reader.next_batch().await.unwrap();
        reader.next_batch().await.unwrap();
        let [stdout_offset, _] = process.offsets();
        assert_eq!(stdout_offset, 9);
        process.detach();
        let again = open_at(&connection, stdout_offset).await;
        assert_eq!(stdout(&again).await, "three\nfour\n", "{mode:?}");
        assert_eq!(exit(&again).await, (0, Completeness::Complete));
    }
}
