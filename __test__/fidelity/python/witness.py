"""What the official Python SDK sees of a simulator: a short list.

Started by python.test.mjs with the simulator's address in WITNESS_URL. Its
transport, its polling and its float timeouts are not the TypeScript SDK's.
"""

import os
import unittest

from runloop_api_client import NotFoundError, RunloopSDK
from runloop_api_client.lib.polling import PollingConfig

SDK = RunloopSDK(
    bearer_token="ak_test_0123456789", base_url=os.environ["WITNESS_URL"]
)


class Witness(unittest.TestCase):
    def box(self, **params):
        box = SDK.devbox.create(**params)
        self.addCleanup(box.shutdown)
        return box

    def test_a_devbox_is_created_awaited_and_shut_down(self):
        box = self.box(
            name="from Python",
            metadata={"language": "python"},
            polling_config=PollingConfig(timeout_seconds=12.5),
        )
        info = box.get_info()
        self.assertEqual(info.status, "running")
        self.assertEqual(info.name, "from Python")
        self.assertEqual(info.metadata, {"language": "python"})
        self.assertEqual(box.shutdown().status, "shutdown")
        self.assertEqual(box.get_info().status, "shutdown")

    def test_an_object_from_an_id_waits_until_the_devbox_runs(self):
        box = self.box()
        self.assertEqual(SDK.devbox.from_id(box.id).get_info().status, "running")

    def test_a_command_has_its_exit_code_and_both_outputs(self):
        result = self.box().cmd.exec("echo out; echo err >&2; exit 7")
        self.assertEqual(result.exit_code, 7)
        self.assertEqual(result.stdout(), "out\n")
        self.assertEqual(result.stderr(), "err\n")

    def test_a_command_outlasts_several_long_polls(self):
        execution = self.box().cmd.exec_async("sleep 1.5; echo awake")
        self.assertEqual(execution.result().stdout(), "awake\n")

    def test_input_reaches_a_command_and_ends(self):
        execution = self.box().cmd.exec_async("cat; echo end", attach_stdin=True)
        execution.send_std_in("first\n")
        execution.send_std_in("second\n")
        execution.close_std_in()
        self.assertEqual(execution.result().stdout(), "first\nsecond\nend\n")

    def test_streamed_chunks_joined_are_the_result(self):
        chunks = []
        result = self.box().cmd.exec(
            "for i in 1 2 3; do echo line $i; sleep 0.1; done", stdout=chunks.append
        )
        self.assertEqual("".join(chunks), "line 1\nline 2\nline 3\n")
        self.assertEqual("".join(chunks), result.stdout())

    def test_more_lines_than_a_view_shows_are_all_there(self):
        result = self.box().cmd.exec("seq 1 1000")
        self.assertEqual(result.stdout(), "".join(f"{n}\n" for n in range(1, 1001)))

    def test_text_is_written_and_read_back(self):
        box = self.box()
        box.file.write(file_path="/tmp/text.txt", contents="grüße\n")
        self.assertEqual(box.file.read(file_path="/tmp/text.txt"), "grüße\n")

    def test_bytes_go_up_and_come_down_unchanged(self):
        box = self.box()
        sent = bytes(range(256)) * 1000
        box.file.upload(path="/tmp/bytes.bin", file=sent)
        self.assertEqual(box.file.download(path="/tmp/bytes.bin"), sent)

    def test_a_snapshot_restores_the_disk(self):
        box = self.box()
        box.file.write(file_path="mark.txt", contents="kept")
        snapshot = box.snapshot_disk(name="from Python")
        self.addCleanup(snapshot.delete)
        restored = snapshot.create_devbox()
        self.addCleanup(restored.shutdown)
        self.assertEqual(restored.file.read(file_path="mark.txt"), "kept")

    def test_suspend_and_resume_end_where_they_should(self):
        box = self.box()
        box.suspend()
        self.assertEqual(box.await_suspended().status, "suspended")
        self.assertEqual(box.resume().status, "running")

    def test_a_missing_devbox_is_a_not_found_error(self):
        with self.assertRaises(NotFoundError):
            SDK.api.devboxes.retrieve("dbx_doesnotexist")


if __name__ == "__main__":
    unittest.main()
