//! What is found and removed after a wrapper was killed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Command as Process};
use std::time::{Duration, Instant};

use beachside_runloop::shell::{CleanUp, Nonce, Partial, Refusal, read_result, wrap};

use crate::harness::{Guest, fetch, find, litter, nonce, text};

/// Starts `script` and waits until it has written a file `ready` at home.
fn start(guest: &Guest, nonce: &Nonce, script: &str) -> Child {
    let script = format!("PATH=/bin:/usr/bin; {script}");
    let child = guest.start(&wrap(&text(&script), nonce).unwrap());
    let began = Instant::now();
    while !guest.home().join("ready").exists() {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "the command never started"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
    fs::remove_file(guest.home().join("ready")).unwrap();
    child
}

/// Kills the whole group of `child`, as the service does on request.
fn kill_group(mut child: Child, signal: &str) -> String {
    let group = format!("-{}", child.id());
    let killed = Process::new(find("kill"))
        .args([signal, "--", &group])
        .status()
        .unwrap();
    assert!(killed.success());
    let mut printed = String::new();
    std::io::Read::read_to_string(child.stdout.as_mut().unwrap(), &mut printed).unwrap();
    child.wait().unwrap();
    printed
}

#[test]
fn f6_output_of_a_killed_command_is_read_out_and_everything_removed() {
    for guest in Guest::each() {
        let nonce = nonce();
        let child = start(
            &guest,
            &nonce,
            "printf partial; printf err >&2; : >ready; sleep 30",
        );
        kill_group(child, "-KILL");
        assert_eq!(
            litter(&nonce).len(),
            1,
            "one directory: {:?}",
            litter(&nonce)
        );
        let Partial::Output { stdout, stderr } = guest.read_out(&nonce, 1_000) else {
            panic!("no output for {:?}", guest.shell);
        };
        assert_eq!(
            (fetch(&stdout), fetch(&stderr)),
            (b"partial".to_vec(), b"err".to_vec())
        );
        assert_eq!(litter(&nonce), Vec::<PathBuf>::new());
        assert_eq!(guest.read_out(&nonce, 1_000), Partial::Nothing);
    }
}

#[test]
fn f6_a_read_out_is_bounded_and_says_how_much_there_was() {
    for guest in Guest::each() {
        let nonce = nonce();
        let child = start(
            &guest,
            &nonce,
            "head -c 3000000 /dev/zero; : >ready; sleep 30",
        );
        kill_group(child, "-KILL");
        let Partial::Output { stdout, .. } = guest.read_out(&nonce, 1_048_576) else {
            panic!("no output for {:?}", guest.shell);
        };
        assert_eq!(
            (stdout.total_bytes, fetch(&stdout).len()),
            (3_000_000, 1_048_576)
        );
        assert!(stdout.truncated());
    }
}

#[test]
fn f3_a_group_killed_by_term_reports_and_cleans_up_by_itself() {
    for guest in Guest::each() {
        let nonce = nonce();
        let child = start(&guest, &nonce, "printf partial; : >ready; sleep 30");
        let printed = kill_group(child, "-TERM");
        let result = read_result(&printed, &nonce).unwrap().unwrap();
        assert_eq!(
            (result.exit_code, fetch(&result.stdout)),
            (143, b"partial".to_vec())
        );
        assert_eq!(litter(&nonce), Vec::<PathBuf>::new());
    }
}

#[test]
fn f6_a_read_out_beside_a_running_command_takes_nothing_from_its_result() {
    for guest in Guest::each() {
        let nonce = nonce();
        let script = "head -c 100000 /dev/zero; : >ready; until test -e go; do sleep 0.01; done; printf more; exit 4";
        let child = start(&guest, &nonce, script);
        let Partial::Output { stdout, .. } = guest.read_out(&nonce, 10) else {
            panic!("no output for {:?}", guest.shell);
        };
        assert_eq!((stdout.total_bytes, fetch(&stdout).len()), (100_000, 10));
        fs::write(guest.home().join("go"), "").unwrap();
        let output = child.wait_with_output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let result = read_result(&printed, &nonce).unwrap().unwrap();
        assert_eq!((result.exit_code, result.stdout.total_bytes), (4, 100_004));
        assert_eq!(fetch(&result.stdout).len(), 100_004);
        assert_eq!(litter(&nonce), Vec::<PathBuf>::new());
    }
}

#[test]
fn r16_clean_up_removes_uploads_that_no_command_took() {
    for guest in Guest::each() {
        let nonce = nonce();
        fs::write(nonce.stdin_path(), "x").unwrap();
        fs::write(nonce.script_path(), "x").unwrap();
        let directory = PathBuf::from(format!("{}abcdef", nonce.directory_prefix()));
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("out"), "x").unwrap();
        assert_eq!(litter(&nonce).len(), 3);
        assert_eq!(guest.clean_up(&nonce), CleanUp::Clean, "{:?}", guest.shell);
        assert_eq!(litter(&nonce), Vec::<PathBuf>::new());
        assert_eq!(
            guest.clean_up(&nonce),
            CleanUp::Clean,
            "nothing there is clean"
        );
    }
}

#[test]
fn f6_a_planted_link_is_neither_read_nor_followed() {
    for guest in Guest::each() {
        let nonce = nonce();
        let treasure = guest.home().join("treasure");
        fs::create_dir(&treasure).unwrap();
        fs::write(treasure.join("out"), "secret").unwrap();
        let planted = PathBuf::from(format!("{}planted", nonce.directory_prefix()));
        symlink(&treasure, &planted).unwrap();
        assert_eq!(
            guest.read_out(&nonce, 1_000),
            Partial::Nothing,
            "{:?}",
            guest.shell
        );
        assert_eq!(
            guest.clean_up(&nonce),
            CleanUp::Left(vec![planted.to_str().unwrap().into()])
        );
        assert!(treasure.join("out").exists(), "{:?}", guest.shell);
        fs::remove_file(planted).unwrap();
    }
}

#[test]
fn r19_a_tool_that_reading_out_needs_and_the_image_lacks_is_named() {
    for guest in Guest::each() {
        fs::remove_file(guest.bin().join("base64")).unwrap();
        let nonce = nonce();
        let partial = guest.read_out(&nonce, 10);
        assert_eq!(
            partial,
            Partial::Refused(Refusal::MissingTool("base64".into()))
        );
        assert_eq!(guest.clean_up(&nonce), CleanUp::Clean);
    }
}
