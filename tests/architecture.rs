//! The arrows between the rooms, as tests that fail with a sentence.
//!
//! Reads source text, so it sees what the compiler does not mind: a room that
//! imports a sibling it must not know, a library outside its room, a file that
//! has grown past what one reads in a sitting. Comments and test modules are
//! left out: a doc link is no dependency, and a test may look around.

#![expect(
    clippy::unwrap_used,
    clippy::string_slice,
    reason = "a test that cannot read the sources has to fail"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What each room may import besides [`SHARED`]. `node -> adapter -> {transport, sse, shell, api -> wire}`.
const ARROWS: [(&str, &[&str]); 12] = [
    ("node", &["adapter"]),
    ("adapter", &["transport", "sse", "shell", "api", "wire"]),
    ("transport", &[]),
    ("sse", &[]),
    ("shell", &[]),
    ("api", &["wire"]),
    ("wire", &[]),
    ("config", &[]),
    ("message", &[]),
    ("observe", &[]),
    ("error", &[]),
    // For tests only.
    ("cases", &[]),
];

/// What everything may use, and that uses only what stands before it.
const SHARED: [&str; 4] = ["error", "observe", "message", "config"];

/// Rooms that do no I/O and ask no clock.
const PURE: [&str; 5] = ["sse", "shell", "api", "wire", "config"];

const IMPURE: [&str; 6] = [
    "tokio::",
    "std::fs",
    "std::net",
    "std::thread",
    "std::process",
    "Instant::now",
];

/// A library and the only files or folders that may name it.
const LIBRARIES: [(&str, &[&str]); 5] = [
    ("reqwest", &["src/transport/http.rs"]),
    (
        "rustls",
        &[
            "src/transport/causes.rs",
            "src/transport/http.rs",
            "src/transport/tls.rs",
        ],
    ),
    ("napi", &["src/node/"]),
    ("napi_derive", &["src/node/"]),
    ("hyper", &[]),
];

const MAX_LINES: usize = 600;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below `folder` with one of these extensions, by its path from the root.
fn files(folder: &str, extensions: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for path in entries.map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !matches!(name.as_str(), "node_modules" | "target" | "dist") {
                    folders.push(path);
                }
            } else if extensions.iter().any(|extension| name.ends_with(extension)) {
                let path = path.strip_prefix(root()).unwrap();
                found.push(path.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    found.sort();
    found
}

/// The adapter's own files, without files and folders that hold tests.
fn sources() -> Vec<String> {
    let mut sources = files("src", &[".rs"]);
    sources.retain(|path| !path.contains("/tests/") && !path.ends_with("/tests.rs"));
    sources
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// The code of a file without comment lines and without its test modules.
fn code(path: &str) -> String {
    let text = read(path);
    let mut kept = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim_start().starts_with("//") {
            continue;
        }
        if line.trim() == "#[cfg(test)]" {
            // Skips the item: a declaration ends on its line, a module at the
            // first closing brace in the same column.
            let indent = line.len() - line.trim_start().len();
            let Some(item) = lines.next() else { break };
            if !item.trim_end().ends_with(';') {
                let end = format!("{}}}", " ".repeat(indent));
                for inner in lines.by_ref() {
                    if inner == end {
                        break;
                    }
                }
            }
            continue;
        }
        kept.push_str(line);
        kept.push('\n');
    }
    kept
}

/// The room of a file in `src/`: its folder, or its name.
fn room(path: &str) -> &str {
    let inside = path.strip_prefix("src/").unwrap();
    inside.split('/').next().unwrap().trim_end_matches(".rs")
}

/// The first segments after `crate::`, those in braces too.
fn imported(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        // Not the tail of another word, and not `$crate`.
        if code[..at].ends_with(|before: char| before.is_alphanumeric() || "_$".contains(before)) {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            None => found.extend(first_word(rest)),
            Some(group) => {
                let mut depth = 0_usize;
                let mut starts_item = true;
                for (at, character) in group.char_indices() {
                    match character {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => starts_item = true,
                        character if starts_item && !character.is_whitespace() => {
                            found.extend(first_word(&group[at..]));
                            starts_item = false;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    found
}

fn first_word(text: &str) -> Option<String> {
    let end = text
        .find(|c: char| !(c.is_alphanumeric() || c == '_'))
        .unwrap_or(text.len());
    (end > 0).then(|| text[..end].to_owned())
}

/// Whether the code names this library as a path or an import.
fn names(code: &str, library: &str) -> bool {
    code.match_indices(library).any(|(at, _)| {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let after = &code[at + library.len()..];
        !code[..at].ends_with(is_part)
            && (after.starts_with("::") || after.starts_with(';') || after.starts_with(" as "))
    })
}

fn report(problems: Vec<String>) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn every_room_imports_only_what_the_arrows_allow() {
    let mut problems = Vec::new();
    for path in sources()
        .iter()
        .filter(|path| path.as_str() != "src/lib.rs")
    {
        let from = room(path);
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == from) else {
            problems.push(format!(
                "{path} is in the room `{from}`, which has no arrows yet: add it to ARROWS."
            ));
            continue;
        };
        // The three that everything may use know each other in one direction only.
        let shared: &[&str] = match SHARED.iter().position(|name| *name == from) {
            Some(at) => &SHARED[..at],
            None => &SHARED,
        };
        let code = code(path);
        for to in imported(&code) {
            let is_room = ARROWS.iter().any(|(name, _)| *name == to);
            if is_room
                && to != from
                && !allowed.contains(&to.as_str())
                && !shared.contains(&to.as_str())
            {
                problems.push(format!(
                    "{path} imports `crate::{to}`, but the room `{from}` must not know `{to}`."
                ));
            }
        }
        if path.matches('/').count() == 2 && code.contains("super::super::") {
            problems.push(format!(
                "{path} reaches out of its room with `super::super`: name the room with `crate::`."
            ));
        }
    }
    report(problems);
}

#[test]
fn pure_rooms_do_no_io_and_ask_no_clock() {
    let mut problems = Vec::new();
    for path in sources().iter().filter(|path| PURE.contains(&room(path))) {
        let code = code(path);
        for word in IMPURE.iter().filter(|word| code.contains(*word)) {
            problems.push(format!(
                "{path} names `{word}`, but the room `{}` is pure.",
                room(path)
            ));
        }
    }
    report(problems);
}

#[test]
fn every_library_is_named_in_its_room_only() {
    let mut problems = Vec::new();
    for path in sources() {
        let code = code(&path);
        for (library, homes) in LIBRARIES {
            let is_home = homes.iter().any(|home| path.starts_with(home));
            if !is_home && names(&code, library) {
                problems.push(format!(
                    "{path} names `{library}`, which belongs to {homes:?} only."
                ));
            }
        }
    }
    report(problems);
}

/// The compiler denies `unsafe` as well; this shows where the lint is lifted.
#[test]
fn unsafe_code_is_in_the_dispatcher_only() {
    let words = ["unsafe ", "unsafe(", "unsafe{", "unsafe_code"];
    let mut problems = Vec::new();
    for path in sources().iter().chain(&files("tests", &[".rs"])) {
        // This file names the word to look for it.
        if matches!(
            path.as_str(),
            "src/node/dispatcher.rs" | "tests/architecture.rs"
        ) {
            continue;
        }
        let text = read(path);
        let found = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .find(|line| words.iter().any(|word| line.contains(word)));
        if let Some(line) = found {
            problems.push(format!(
                "{path} holds unsafe code, which belongs to src/node/dispatcher.rs: {line}"
            ));
        }
    }
    assert!(read("src/node/dispatcher.rs").contains("unsafe {"));
    report(problems);
}

#[test]
fn the_simulator_knows_nothing_of_the_adapter() {
    let mut problems = Vec::new();
    if read("simulator/Cargo.toml").contains("beachside") {
        problems.push(
            "simulator/Cargo.toml depends on the adapter, whose independent witness it is."
                .to_owned(),
        );
    }
    for path in files("simulator/src", &[".rs"]) {
        if names(&code(&path), "beachside_runloop") {
            problems.push(format!(
                "{path} names the adapter, whose independent witness it is."
            ));
        }
    }
    report(problems);
}

#[test]
fn r1_our_javascript_imports_nothing_that_speaks_http() {
    let modules = ["http", "https", "http2", "net", "tls", "undici"];
    let mut paths = files("client/src", &[".ts"]);
    paths.extend(
        ["index.js", "index.mjs"]
            .map(str::to_owned)
            .into_iter()
            .filter(|path| root().join(path).exists()),
    );
    let mut problems = Vec::new();
    for path in paths {
        let code = code(&path);
        // A file that declares a `fetch` of its own means that one.
        let declares_fetch = code
            .lines()
            .any(|line| line.trim_start().starts_with("fetch("));
        for line in code.lines() {
            let imports =
                line.contains("import") || line.contains("require(") || line.contains("from ");
            let found = modules.iter().find(|module| {
                ["\"", "'"].iter().any(|quote| {
                    line.contains(&format!("{quote}{module}{quote}"))
                        || line.contains(&format!("{quote}node:{module}{quote}"))
                })
            });
            if let Some(module) = found.filter(|_| imports) {
                problems.push(format!(
                    "{path} imports `{module}`; requests are the addon's."
                ));
            }
            if line.contains("fetch(") && !declares_fetch {
                problems.push(format!("{path} calls `fetch`; requests are the addon's."));
            }
        }
    }
    report(problems);
}

#[test]
fn no_file_grows_past_600_lines() {
    let mut problems = Vec::new();
    let folders = [
        "src",
        "simulator",
        "client",
        "tests",
        "__test__",
        "examples",
        "bench",
        "scripts",
    ];
    for path in folders
        .iter()
        .flat_map(|folder| files(folder, &[".rs", ".ts", ".js", ".mjs", ".cjs"]))
    {
        let lines = read(&path).lines().count();
        if lines > MAX_LINES {
            problems.push(format!(
                "{path} has {lines} lines: split it by verb (aim for 50 to 350)."
            ));
        }
    }
    report(problems);
}

#[test]
fn the_reader_of_imports_sees_groups_and_ignores_comments_and_tests() {
    let seen = |code: &str| imported(code).into_iter().collect::<Vec<_>>();
    assert_eq!(seen("use crate::api::{a, b};"), ["api"]);
    assert_eq!(
        seen("use crate::{\n    api::{self, x},\n    wire,\n};"),
        ["api", "wire"]
    );
    assert_eq!(seen("fn f(x: crate::sse::Event) {}"), ["sse"]);
    assert_eq!(
        seen("use mycrate::api; $crate::shell!()"),
        Vec::<String>::new()
    );
    assert!(names("use reqwest::Client;", "reqwest"));
    assert!(!names("let my_reqwest = reqwest_free;", "reqwest"));
}
