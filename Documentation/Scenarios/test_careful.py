"""The careful client as a unittest (`python3 -m unittest test_careful`, or pytest): one test, named after the scenario."""

import os
import unittest

from careful import Failed, Tasks


class ScenarioTest(unittest.TestCase):
    @unittest.skipUnless("LARDER_TASK" in os.environ, "run it with: larder-server scenarios run -- python3 -m unittest …")
    def test_scenario(self):
        with self.subTest(os.environ["LARDER_SCENARIO"]):
            try:
                getattr(Tasks(os.environ), os.environ["LARDER_TASK"])()
            except Failed as rejection:
                self.assertEqual(os.environ["LARDER_SCENARIO"], "rejected-transfer", rejection)


if __name__ == "__main__":
    unittest.main()
