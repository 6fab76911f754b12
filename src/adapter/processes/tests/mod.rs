//! Processes against a model of the service, in paused time.

mod complete;
mod service;
mod streams;
mod verbs;

use std::time::Duration;

use super::{
    CommandInput, Completeness, OpenProcessRequest, OutputReader, Process, StartRequest, Which,
};
use crate::adapter::Call;
use crate::adapter::Connection;
use crate::api::executions::Output;
use crate::error::Result;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn writes(output: Output, texts: &[(u64, &str)]) -> Vec<(Duration, Output, String)> {
    texts
        .iter()
        .map(|(at, text)| (seconds(*at), output, (*text).to_owned()))
        .collect()
}

fn start_request() -> StartRequest {
    StartRequest {
        sandbox_id: "dbx_1".into(),
        command: CommandInput::Arguments(vec!["true".into()]),
        cwd: None,
        env: std::collections::BTreeMap::new(),
    }
}

async fn open(connection: &Connection) -> Process {
    open_at(connection, 0).await
}

async fn open_at(connection: &Connection, stdout_offset: u64) -> Process {
    let request = OpenProcessRequest {
        sandbox_id: "dbx_1".into(),
        process_id: "exec_1".into(),
        stdout_offset,
        stderr_offset: 0,
    };
    connection
        .open_process(&request, &Call::default())
        .await
        .unwrap()
}

/// Everything that a reader gives.
async fn all(reader: &OutputReader) -> Result<String> {
    let mut all = String::new();
    while let Some(pieces) = reader.next_batch().await? {
        pieces.iter().for_each(|piece| all.push_str(&piece.text));
    }
    Ok(all)
}

async fn exit(process: &Process) -> (i32, Completeness) {
    let exit = process.wait(&Call::default()).await.unwrap();
    (exit.exit_code, exit.output)
}

async fn stdout(process: &Process) -> String {
    all(&process.read(Which::Stdout)).await.unwrap()
}
