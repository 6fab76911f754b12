//! The path of a request as a template, by which requests can be grouped.

/// Words of the API's paths. Whatever else stands in one is an id.
const WORDS: [&str; 25] = [
    "v1",
    "accounts",
    "me",
    "blueprints",
    "list_public",
    "devboxes",
    "disk_snapshots",
    "status",
    "delete",
    "download_file",
    "upload_file",
    "execute",
    "executions",
    "kill",
    "stream_stdout_updates",
    "stream_stderr_updates",
    "wait_for_status",
    "resume",
    "suspend",
    "shutdown",
    "snapshot_disk_async",
    "network-policies",
    "secrets",
    "execute_async",
    "list",
];

/// `/v1/devboxes/{id}/execute` of `/v1/devboxes/dbx_1/execute`.
pub(super) fn route(path: &str) -> String {
    let segments = path.split('/').map(|segment| {
        if segment.is_empty() || WORDS.contains(&segment) {
            segment
        } else {
            "{id}"
        }
    });
    segments.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_keeps_the_words_of_the_api_and_no_id() {
        for (path, expected) in [
            ("/v1/accounts/me", "/v1/accounts/me"),
            ("/v1/devboxes/dbx_1", "/v1/devboxes/{id}"),
            (
                "/v1/devboxes/dbx_1/executions/abc/kill",
                "/v1/devboxes/{id}/executions/{id}/kill",
            ),
            (
                "/v1/devboxes/disk_snapshots/snp_1/status",
                "/v1/devboxes/disk_snapshots/{id}/status",
            ),
        ] {
            assert_eq!(route(path), expected);
        }
    }

    #[test]
    fn every_word_that_the_api_room_puts_into_a_path_is_known() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/api");
        let mut words = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            for call in code.split("path([").skip(1) {
                let segments = call.split(']').next().unwrap();
                for word in segments.split('"').skip(1).step_by(2) {
                    assert!(WORDS.contains(&word), "{word} is missing in WORDS");
                    words += 1;
                }
            }
        }
        assert!(words > 20);
    }
}
