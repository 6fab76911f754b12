//! Writing and reading files the way the adapter does.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use beachside_runloop::shell::{
    FileContent, FileFault, FileSource, Nonce, WRITE_INLINE_LIMIT_BYTES, Written, probe_file,
    read_probe, read_written, write_file,
};

use crate::harness::{FILE_TOOLS, Guest, SHELLS, Shell, litter, nonce};

pub(crate) fn guest(shell: Shell) -> Guest {
    let guest = Guest::new(shell);
    for tool in FILE_TOOLS {
        guest.install(tool);
    }
    guest
}

pub(crate) fn each() -> impl Iterator<Item = Guest> {
    SHELLS.into_iter().map(guest)
}

/// The script that writes `content`, which is uploaded where it is long, as the adapter does.
pub(crate) fn script(path: &str, content: &[u8], mode: Option<u32>, nonce: &Nonce) -> String {
    let source = if content.len() <= WRITE_INLINE_LIMIT_BYTES {
        FileSource::Inline(content)
    } else {
        fs::write(nonce.file_path(), content).unwrap();
        let bytes = content.len() as u64;
        FileSource::Uploaded { bytes }
    };
    let wrapped = write_file(path, source, mode, nonce).unwrap();
    assert!(
        wrapped.upload.is_none(),
        "a write always fits into one command"
    );
    wrapped.command
}

pub(crate) fn try_write(
    guest: &Guest,
    path: &str,
    content: &[u8],
    mode: Option<u32>,
) -> Result<Written, FileFault> {
    let nonce = nonce();
    let output = guest
        .process(&script(path, content, mode, &nonce))
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let outcome = read_written(&printed, &nonce).unwrap_or_else(|error| {
        panic!(
            "{:?}: {error} in {printed:?} {:?}",
            guest.shell,
            String::from_utf8_lossy(&output.stderr)
        )
    });
    assert_eq!(litter(&nonce), Vec::<PathBuf>::new(), "{:?}", guest.shell);
    outcome
}

pub(crate) fn write(guest: &Guest, path: &str, content: &[u8]) {
    let outcome = try_write(guest, path, content, None);
    assert_eq!(
        outcome,
        Ok(Written { left_upload: None }),
        "{:?} {path}",
        guest.shell
    );
}

pub(crate) fn probe(guest: &Guest, path: &str) -> Result<FileContent, FileFault> {
    let nonce = nonce();
    let printed = guest.run(&probe_file(path, &nonce).unwrap());
    read_probe(&printed, path, &nonce)
        .unwrap_or_else(|error| panic!("{:?}: {error} in {printed:?}", guest.shell))
}

/// What the adapter reads: inline, or by the download of the path that the probe names.
pub(crate) fn read(guest: &Guest, path: &str) -> Result<Vec<u8>, FileFault> {
    Ok(match probe(guest, path)? {
        FileContent::Inline(bytes) => bytes,
        FileContent::Large { path, bytes } => {
            let content = fs::read(path).unwrap();
            assert_eq!(content.len() as u64, bytes);
            content
        }
    })
}

/// Temporary files that a write left beside its target.
pub(crate) fn scraps(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains(".beachside-"))
        .collect()
}

pub(crate) fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}
