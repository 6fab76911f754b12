//! Many commands, after which the guest is as it was before.

use std::time::Duration;

use bytes::Bytes;

use crate::harness::Guest;

/// Repetitions; `TEST_SCALE` makes them fewer or more.
fn times(count: usize) -> usize {
    let scale = std::env::var("TEST_SCALE")
        .ok()
        .and_then(|scale| scale.parse::<f64>().ok());
    let scaled = scale.unwrap_or(1.0) * count as f64;
    (scaled as usize).max(1)
}

#[tokio::test(flavor = "multi_thread")]
async fn i8_two_thousand_mixed_commands_leave_no_file_and_no_process() {
    let guest = Guest::start().await;
    let look = "ls -A /tmp; set -- /proc/[0-9]*; echo $#";
    let before = guest.raw(look).await;
    let lanes = (0..8_usize).map(|lane| {
        let guest = guest.clone();
        tokio::spawn(async move {
            for number in 0..times(2_000) / 8 {
                one(&guest, lane * 1_000_000 + number).await;
            }
        })
    });
    for lane in futures::future::join_all(lanes).await {
        lane.unwrap();
    }
    guest.assert_clean("beachside").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(guest.raw(look).await, before);
}

/// One command of the kind that `number` picks.
async fn one(guest: &Guest, number: usize) {
    match number % 10 {
        0 => {
            let mut request = guest.argv(&["cat"]);
            let input = Bytes::from(format!("{number}").repeat(1 + number % 7_000));
            request.stdin = Some(input.clone());
            assert_eq!(guest.exec(&request).await.stdout, input);
        }
        1 => {
            let size = 30_000 + number % 9_000;
            let record = guest
                .exec(&guest.text(&format!("head -c {size} /dev/zero")))
                .await;
            assert_eq!(record.stdout.len(), size);
        }
        2 => {
            let mut request = guest.text("echo no");
            request.cwd = Some("/nowhere".into());
            guest.fail(&request).await;
        }
        3 => {
            let record = guest.exec(&guest.text("sleep 0.05 & kill -9 $$")).await;
            assert_eq!((record.exit_code, record.stderr.len()), (137, 0));
        }
        4 if number % 100 == 4 => {
            let mut request = guest.text("sleep 30");
            request.timeout_seconds = Some(0.2);
            guest.fail(&request).await;
        }
        5 => {
            let path = format!("file-{}", number % 50);
            guest.write(&path, format!("{number}")).await.unwrap();
            assert!(guest.read(&path).await.is_ok());
        }
        6 => {
            let record = guest.exec(&guest.argv(&["no such program"])).await;
            assert_eq!(record.exit_code, 127);
        }
        _ => {
            let code = (number % 256) as u8;
            let record = guest
                .exec(&guest.text(&format!("echo {number}; exit {code}")))
                .await;
            assert_eq!(
                (record.exit_code, record.stdout),
                (code, Bytes::from(format!("{number}\n")))
            );
        }
    }
}
