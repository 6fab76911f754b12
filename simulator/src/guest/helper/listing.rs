//! What runs below this process and what lies under its directories for temporary files.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use nix::unistd::getpid;

use crate::guest::protocol::ListedProcess;

/// Every process below this one.
pub(super) fn descendants() -> Vec<ListedProcess> {
    // A process that ends while it is looked at is not listed.
    let listed = descendant_ids().into_iter().filter_map(describe);
    listed.collect()
}

/// The ids of every process below this one. One that changes its parent meanwhile may be
/// missing.
pub(super) fn descendant_ids() -> Vec<i32> {
    let own = getpid().as_raw();
    match children_of(own) {
        Ok(children) => below(children, |pid| children_of(pid).unwrap_or_default()),
        // A kernel without lists of children. It takes a look at every process there is.
        Err(_) => {
            let mut by_parent = children_by_parent();
            let children = by_parent.remove(&own).unwrap_or_default();
            below(children, |pid| by_parent.remove(&pid).unwrap_or_default())
        }
    }
}

fn below(children: Vec<i32>, mut children_of: impl FnMut(i32) -> Vec<i32>) -> Vec<i32> {
    let mut found = children;
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        found.extend(children_of(pid));
        next += 1;
    }
    found
}

/// The processes that a process has started, whichever of its threads did.
fn children_of(pid: i32) -> io::Result<Vec<i32>> {
    let mut children = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let list = fs::read_to_string(thread?.path().join("children"))?;
        children.extend(
            list.split_ascii_whitespace()
                .filter_map(|pid| pid.parse::<i32>().ok()),
        );
    }
    Ok(children)
}

fn children_by_parent() -> HashMap<i32, Vec<i32>> {
    let mut by_parent: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if let Some(process) = pid.and_then(describe) {
            by_parent
                .entry(process.parent)
                .or_default()
                .push(process.pid);
        }
    }
    by_parent
}

fn describe(pid: i32) -> Option<ListedProcess> {
    let dir = PathBuf::from(format!("/proc/{pid}"));
    let stat = fs::read(dir.join("stat")).ok()?;
    // "PID (NAME) STATE PARENT ...", and the name may hold anything.
    let end_of_name = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end_of_name + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let arguments = fs::read(dir.join("cmdline")).ok()?;
    let arguments = arguments.strip_suffix(b"\0").map(|arguments| {
        let words = arguments.split(|&byte| byte == 0);
        words
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect()
    });
    Some(ListedProcess {
        pid,
        parent,
        zombie: matches!(state, "Z" | "X"),
        arguments: arguments.unwrap_or_default(),
    })
}

/// The paths of everything under `dirs`.
pub(super) fn files_under(dirs: &[PathBuf]) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = dirs.to_vec();
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            found.push(path.to_string_lossy().into_owned());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                pending.push(path);
            }
        }
    }
    found.sort_unstable();
    found
}
