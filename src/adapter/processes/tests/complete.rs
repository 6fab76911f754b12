//! What `complete` may be said of, over interleavings of output, exit and cuts.
//!
//! The service of these tests keeps one of the two promises that
//! `docs/design/streams.md` asks for: its view of the ended execution shows all
//! of the output, or its streams do not close in order before they gave it.

use proptest::prelude::*;

use super::service::{Behaviour, Service};
use super::*;
use crate::sse::OffsetMode;

const TEXT: &[(u64, &str)] = &[(1, "one\n"), (2, "twé\n"), (3, "three\n"), (4, "four\n")];
const WHOLE: &str = "one\ntwé\nthree\nfour\n";

/// It exits after two seconds, of which nobody knows yet what it wrote.
fn early() -> Service {
    let mut service = Service::new(writes(Output::Stdout, TEXT)).exits(seconds(2), 0);
    service.view_is_early = true;
    service
}

#[tokio::test(start_paused = true)]
async fn c1_r22_output_behind_the_report_of_the_exit_is_read_and_complete() {
    let (connection, service) = early().connect().await;
    let process = open(&connection).await;
    let reader = process.read(Which::Stdout);
    let (text, exit) = tokio::join!(all(&reader), exit(&process));
    assert_eq!(text.unwrap(), WHOLE);
    assert_eq!(exit, (0, Completeness::Complete));
    assert_eq!(service.started.elapsed(), seconds(4), "and at once");
}

#[tokio::test(start_paused = true)]
async fn b1_a_text_that_ends_as_no_report_does_is_not_complete() {
    // The report at the exit shows two lines, and those after four seconds four:
    // "three" is no end of either.
    let mut script = vec![Behaviour::Broken(3), Behaviour::Refused(429, Some(2.5))];
    script.extend(vec![Behaviour::CutClean(0); 1000]);
    let (connection, service) = early().behaves(script).connect().await;
    let process = open(&connection).await;
    let text = stdout(&process).await;
    assert_eq!(text, "one\ntwé\nthree\n");
    assert_eq!(exit(&process).await, (0, Completeness::Incomplete));
    // A pause of half a second each, with a look at the execution.
    let looks = service.requests("Get /v1/devboxes/dbx_1/executions/exec_1");
    assert!(looks.len() < 100, "{} requests", looks.len());
}

/// When each line is written, in milliseconds; when the process exits, and the rest.
#[derive(Debug, Clone)]
struct Case {
    writes: Vec<u64>,
    exit: u64,
    view_is_early: bool,
    mode: OffsetMode,
    idle: u64,
    script: Vec<Behaviour>,
    reading_from: u64,
}

fn behaviour(may_close: bool) -> impl Strategy<Value = Behaviour> {
    let chunks = 0..4_usize;
    let clean = chunks.clone().prop_map(move |count| {
        if may_close {
            Behaviour::CutClean(count)
        } else {
            Behaviour::Broken(count)
        }
    });
    prop_oneof![
        3 => clean,
        3 => chunks.clone().prop_map(Behaviour::Broken),
        2 => (chunks, prop_oneof![Just(408_u16), Just(503)])
            .prop_map(|(count, code)| Behaviour::ErrorEvent(count, code)),
        1 => Just(Behaviour::Reset),
        1 => prop_oneof![Just(408_u16), Just(429), Just(502)]
            .prop_map(|status| Behaviour::Refused(status, None)),
        2 => (0..3000_u64).prop_map(|late| Behaviour::LateTail(Duration::from_millis(late))),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    any::<bool>().prop_flat_map(|view_is_early| {
        (
            prop::collection::vec(0..3000_u64, 0..12),
            0..4000_u64,
            prop_oneof![Just(OffsetMode::Start), Just(OffsetMode::End)],
            300..5000_u64,
            prop::collection::vec(behaviour(!view_is_early), 0..7),
            0..5000_u64,
        )
            .prop_map(
                move |(mut writes, exit, mode, idle, script, reading_from)| {
                    writes.sort_unstable();
                    Case {
                        writes,
                        exit,
                        view_is_early,
                        mode,
                        idle,
                        script,
                        reading_from,
                    }
                },
            )
    })
}

/// What was written, what was read and what was said of it.
async fn outcome(case: &Case) -> (String, String, Completeness) {
    let lines: Vec<_> = (case.writes.iter().enumerate())
        .map(|(line, at)| {
            let text = format!("{line} é日😀\n");
            (Duration::from_millis(*at), Output::Stdout, text)
        })
        .collect();
    let whole = lines.iter().map(|(_, _, text)| text.as_str()).collect();
    let mut service = Service::new(lines)
        .exits(Duration::from_millis(case.exit), 0)
        .behaves(case.script.clone());
    service.view_is_early = case.view_is_early;
    service.mode = case.mode;
    service.idle = Duration::from_millis(case.idle);
    let (connection, _) = service.connect().await;
    tokio::time::sleep(Duration::from_millis(case.reading_from)).await;
    let process = open(&connection).await;
    let text = stdout(&process).await;
    (whole, text, exit(&process).await.1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn r21_r22_d1_whatever_ends_late_or_is_cut_comes_once_and_is_called_complete(case in case()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        let (whole, text, output) = runtime.block_on(outcome(&case));
        prop_assert_eq!(text, whole);
        prop_assert_eq!(output, Completeness::Complete);
    }
}
