//! Which shell and programs a Devbox has, and whose.

use runloop_simulator::guest::{BoxSpec, GuestShell, Image, Machine, User};

use crate::support::{print, run, skip};
use crate::{in_both, in_namespaces};

in_both!(
    dash_runs_commands_and_named_shells,
    busybox_runs_commands_with_its_own_tools,
    only_chosen_programs_are_on_the_path,
    a_program_that_the_host_lacks_is_an_error,
);

fn spec(shell: GuestShell, tools: Option<&[&str]>) -> BoxSpec {
    let mut spec = BoxSpec::new("box");
    let tools = tools.map(|tools| tools.iter().map(|&tool| tool.to_owned()).collect());
    spec.image = Image { shell, tools };
    spec
}

async fn dash_runs_commands_and_named_shells(machine: Machine) {
    let guest = machine
        .boot(spec(GuestShell::Dash, None), None)
        .await
        .unwrap();
    assert_eq!(
        print(&guest, "echo {1..3} $0 $SHELL").await,
        "{1..3} dash /bin/dash\n"
    );
    let shell = guest.shell("a");
    assert_eq!(shell.spawn("cd /usr; V=1").unwrap().finished().await, 0);
    let process = shell.spawn("pwd; echo $V {1..3}; exit 4").unwrap();
    assert_eq!(process.finished().await, 4);
    assert_eq!(crate::support::text(process.stdout()), "/usr\n1 {1..3}\n");
}

async fn busybox_runs_commands_with_its_own_tools(machine: Machine) {
    if !std::path::Path::new("/bin/busybox").exists() {
        return skip("busybox is not installed");
    }
    let tools = ["sh", "mktemp", "base64", "head", "wc", "tr", "env", "rm"];
    let guest = machine
        .boot(spec(GuestShell::BusyBox, Some(&tools)), None)
        .await
        .unwrap();
    let script = "for t in sh mktemp base64 wc; do readlink -f \"$(command -v $t)\"; done 2>&1";
    let outcome = run(&guest, script).await;
    assert!(
        outcome.stdout.contains("readlink: not found"),
        "{outcome:?}"
    );
    assert_eq!(
        print(&guest, "sh -c 'printf hello | base64'").await,
        "aGVsbG8=\n"
    );
    let shell = guest.shell("a");
    assert_eq!(shell.spawn("cd /usr").unwrap().finished().await, 0);
    let process = shell.spawn("pwd").unwrap();
    assert_eq!(process.finished().await, 0);
    assert_eq!(crate::support::text(process.stdout()), "/usr\n");
}

async fn only_chosen_programs_are_on_the_path(machine: Machine) {
    let tools = ["sh", "head", "env"];
    let guest = machine
        .boot(spec(GuestShell::Dash, Some(&tools)), None)
        .await
        .unwrap();
    assert_eq!(
        print(
            &guest,
            "echo x | head -n 1; sh -c 'echo y'; env -i /bin/echo z"
        )
        .await,
        "x\ny\nz\n"
    );
    for missing in ["cat", "bash", "ls", "sed"] {
        assert_eq!(run(&guest, missing).await.code, 127, "{missing}");
    }
    let listing = print(&guest, "cd ${PATH} && echo *").await;
    assert_eq!(listing, "env head sh\n");
}

async fn a_program_that_the_host_lacks_is_an_error(machine: Machine) {
    for missing in ["no-such-program", "../bin/cat", ""] {
        let error = machine
            .boot(spec(GuestShell::Bash, Some(&[missing])), None)
            .await
            .unwrap_err();
        assert!(
            error.to_string().contains("the host has no program"),
            "{error}"
        );
    }
    machine
        .boot(spec(GuestShell::Bash, Some(&["cat"])), None)
        .await
        .unwrap();
}

mod isolated {
    use super::*;

    in_namespaces!(a_devbox_runs_as_whom_it_is_told);

    async fn a_devbox_runs_as_whom_it_is_told(machine: Machine) {
        let mut spec = BoxSpec::new("box");
        spec.user = User {
            name: "someone".into(),
            uid: 4321,
            home: "/home/someone".into(),
        };
        let guest = machine.boot(spec, None).await.unwrap();
        let script = "id -un; id -u; id -g; pwd; echo ~someone; touch x; stat -c %U x";
        let expected = "someone\n4321\n4321\n/home/someone\n/home/someone\nsomeone\n";
        assert_eq!(print(&guest, script).await, expected);
        guest.write_file("y", "x".into()).await.unwrap();
        assert_eq!(
            print(&guest, "stat -c %U:%G y; cat y").await,
            "someone:someone\nx"
        );
    }
}
