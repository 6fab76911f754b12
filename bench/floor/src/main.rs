//! One measurement of a bare reqwest loop: no wrapper, no JavaScript, no rules.
//!
//! `bench-floor JOB` with the job of `bench/worker.mjs` as JSON; prints the
//! same figures. It checks what it reads after the clock has stopped. The
//! runtime has one thread, as the addon's.

#![expect(
    clippy::print_stdout,
    reason = "one line of figures is what this program is for"
)]

use std::error::Error;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures::future::try_join_all;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::Deserialize;
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Job {
    measure: String,
    url: String,
    #[serde(rename = "box")]
    devbox: String,
    #[serde(default)]
    calls: usize,
    #[serde(default)]
    in_flight: usize,
    #[serde(default)]
    bytes: usize,
    #[serde(default)]
    event: usize,
    #[serde(default)]
    streams: usize,
    /// Bytes that a command is longer by.
    #[serde(default)]
    padding: usize,
}

#[derive(Deserialize)]
struct Event {
    output: String,
}

struct Figures {
    seconds: f64,
    cpu_seconds: f64,
    median_ms: Option<f64>,
}

fn main() -> Result<()> {
    let text = std::env::args().nth(1).ok_or("usage: bench-floor JOB")?;
    let job: Job = serde_json::from_str(&text)?;
    // reqwest asks for one even where no TLS is spoken; twice is no harm.
    let provider = rustls::crypto::ring::default_provider();
    provider.install_default().unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let figures = runtime.block_on(async { tokio::spawn(measure(job)).await })??;
    println!(
        "{}",
        json!({
            "seconds": figures.seconds,
            "cpuSeconds": figures.cpu_seconds,
            "medianMs": figures.median_ms,
        })
    );
    Ok(())
}

async fn measure(job: Job) -> std::result::Result<Figures, String> {
    run(job).await.map_err(|error| error.to_string())
}

async fn run(job: Job) -> std::result::Result<Figures, Box<dyn Error + Send + Sync>> {
    let client = reqwest::Client::builder()
        .no_proxy()
        .pool_max_idle_per_host(usize::MAX)
        .build()?;
    let base = format!("{}/v1/devboxes/{}", job.url, job.devbox);
    match job.measure.as_str() {
        "exec" => {
            let command = format!("runloop-stub stdout=6{}", " #".repeat(job.padding / 2));
            let body = json!({ "command": command, "optimistic_timeout": 10 }).to_string();
            let body = Bytes::from(body);
            let warm_up = (job.calls / 2).min(1000).max(job.in_flight);
            exec_all(&client, &base, &body, warm_up, job.in_flight).await?;
            let clock = Clock::start();
            let mut times = exec_all(&client, &base, &body, job.calls, job.in_flight).await?;
            let mut figures = clock.stop();
            times.sort_unstable();
            let median = times.get(times.len() / 2).copied().unwrap_or_default();
            figures.median_ms = Some(median.as_secs_f64() * 1000.0);
            Ok(figures)
        }
        "stream" => {
            stream(&client, &base, 1024, job.event).await?;
            let clock = Clock::start();
            let one = || stream(&client, &base, job.bytes / job.streams, job.event);
            let texts = try_join_all((0..job.streams).map(|_| one())).await?;
            let figures = clock.stop();
            for text in texts {
                check(text.as_bytes(), job.bytes / job.streams)?;
            }
            Ok(figures)
        }
        "read" => {
            read(&client, &base, 1024).await?;
            let clock = Clock::start();
            let content = read(&client, &base, job.bytes).await?;
            let figures = clock.stop();
            check(&content, job.bytes)?;
            Ok(figures)
        }
        "write" => {
            let content = Bytes::from(payload(job.bytes));
            write(&client, &base, Bytes::from_static(b"a")).await?;
            let clock = Clock::start();
            write(&client, &base, content).await?;
            Ok(clock.stop())
        }
        other => Err(format!("no measure {other}").into()),
    }
}

type Answer<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

async fn exec_all(
    client: &reqwest::Client,
    base: &str,
    body: &Bytes,
    calls: usize,
    in_flight: usize,
) -> Answer<Vec<Duration>> {
    let per_lane = calls / in_flight;
    let lanes = (0..in_flight).map(|_| {
        let (client, base, body) = (client.clone(), base.to_owned(), body.clone());
        tokio::spawn(async move {
            let mut times = Vec::with_capacity(per_lane);
            for _ in 0..per_lane {
                let start = Instant::now();
                exec(&client, &base, &body).await?;
                times.push(start.elapsed());
            }
            Answer::Ok(times)
        })
    });
    let mut all = Vec::with_capacity(calls);
    for lane in try_join_all(lanes).await? {
        all.extend(lane?);
    }
    Ok(all)
}

async fn exec(client: &reqwest::Client, base: &str, body: &Bytes) -> Answer<()> {
    let answer = client
        .post(format!("{base}/execute"))
        .header("authorization", "Bearer ak_bench_0123456789")
        .header("content-type", "application/json")
        .body(body.clone())
        .send()
        .await?;
    let view: Value = serde_json::from_slice(&answer.bytes().await?)?;
    let is_right = view.get("stdout").and_then(Value::as_str) == Some("a line")
        && view.get("exit_status") == Some(&json!(0));
    is_right
        .then_some(())
        .ok_or_else(|| "a wrong result".into())
}

async fn stream(
    client: &reqwest::Client,
    base: &str,
    bytes: usize,
    event: usize,
) -> Answer<String> {
    let command = format!("runloop-stub stdout={bytes} event={event}");
    let started = client
        .post(format!("{base}/execute_async"))
        .body(json!({ "command": command }).to_string())
        .send()
        .await?;
    let view: Value = serde_json::from_slice(&started.bytes().await?)?;
    let id = view.get("execution_id").and_then(Value::as_str);
    let id = id.ok_or("no id")?;
    let mut answer = client
        .get(format!("{base}/executions/{id}/stream_stdout_updates"))
        .send()
        .await?;
    let (mut text, mut rest) = (String::new(), BytesMut::new());
    while let Some(piece) = answer.chunk().await? {
        rest.extend_from_slice(&piece);
        while let Some(end) = memchr::memmem::find(&rest, b"\n\n") {
            let line = rest.split_to(end + 2);
            let data = line.strip_prefix(b"data: ").ok_or("no data")?;
            text.push_str(&serde_json::from_slice::<Event>(data)?.output);
        }
    }
    Ok(text)
}

async fn read(client: &reqwest::Client, base: &str, bytes: usize) -> Answer<Bytes> {
    let body = json!({ "path": format!("/runloop-stub/{bytes}") }).to_string();
    let request = client.post(format!("{base}/download_file")).body(body);
    Ok(request.send().await?.bytes().await?)
}

async fn write(client: &reqwest::Client, base: &str, content: Bytes) -> Answer<()> {
    let length = content.len() as u64;
    let part = reqwest::multipart::Part::stream_with_length(content, length).file_name("file");
    let form = reqwest::multipart::Form::new()
        .text("path", "/srv/file")
        .part("file", part);
    let request = client.post(format!("{base}/upload_file")).multipart(form);
    request.send().await?.error_for_status()?;
    Ok(())
}

struct Clock(Instant, f64);

impl Clock {
    fn start() -> Self {
        Self(Instant::now(), cpu_seconds())
    }

    fn stop(self) -> Figures {
        Figures {
            seconds: self.0.elapsed().as_secs_f64(),
            cpu_seconds: cpu_seconds() - self.1,
            median_ms: None,
        }
    }
}

/// Of this process, user and system.
fn cpu_seconds() -> f64 {
    getrusage(UsageWho::RUSAGE_SELF).map_or(f64::NAN, |usage| {
        (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6
    })
}

fn payload(bytes: usize) -> Vec<u8> {
    const LINE: &[u8] = b"a line of output, as a build or a test prints it, 0123456789\n";
    LINE.iter().copied().cycle().take(bytes).collect()
}

fn check(content: &[u8], bytes: usize) -> Answer<()> {
    (content == payload(bytes))
        .then_some(())
        .ok_or_else(|| "wrong bytes".into())
}
