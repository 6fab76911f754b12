//! What runs below this process and what lies under its directories for temporary files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use nix::unistd::{Pid, getpid};

use crate::guest::protocol::ListedProcess;

/// Every process below this one, parents before children.
pub(super) fn descendants() -> Vec<ListedProcess> {
    let mut by_parent: HashMap<i32, Vec<ListedProcess>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        // A process that ends while it is looked at is not listed.
        if let Some(process) = pid.and_then(|pid| describe(pid, &entry.path())) {
            by_parent.entry(process.parent).or_default().push(process);
        }
    }
    let mut found = Vec::new();
    let mut parents = vec![getpid().as_raw()];
    while let Some(parent) = parents.pop() {
        let children = by_parent.remove(&parent).unwrap_or_default();
        parents.extend(children.iter().map(|child| child.pid));
        found.extend(children);
    }
    found
}

/// The ids of every process below this one.
pub(super) fn descendant_ids() -> impl Iterator<Item = Pid> {
    descendants()
        .into_iter()
        .map(|process| Pid::from_raw(process.pid))
}

fn describe(pid: i32, dir: &Path) -> Option<ListedProcess> {
    let stat = std::fs::read(dir.join("stat")).ok()?;
    // "PID (NAME) STATE PARENT GROUP SESSION ...", and the name may hold anything.
    let end_of_name = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end_of_name + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let _group = fields.next()?;
    let session = fields.next()?.parse().ok()?;
    let arguments = std::fs::read(dir.join("cmdline")).ok()?;
    let arguments = arguments.strip_suffix(b"\0").map(|arguments| {
        let words = arguments.split(|&byte| byte == 0);
        words
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect()
    });
    Some(ListedProcess {
        pid,
        parent,
        session,
        zombie: matches!(state, "Z" | "X"),
        arguments: arguments.unwrap_or_default(),
    })
}

/// The paths of everything under `dirs`.
pub(super) fn files_under(dirs: &[PathBuf]) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = dirs.to_vec();
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
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
