// Package e2e tests the page end to end in a real Chromium. The command `stackglass serve` serves
// the page. The tests use the page like a person, and compare the page's answers with the command's
// answers for the same file. The package contains only tests.
//
//	make e2e                                          builds, then runs them all
//	STACKGLASS_E2E=1 go test ./tools/e2e -run Keyboard
//	STACKGLASS_E2E=1 STACKGLASS_SHOTS=dir go test ./tools/e2e -run Screenshots
//
// How a test works:
//
//  1. All tests share one Chromium, with a profile on disk that is empty at first. Every host name
//     except 127.0.0.1 resolves to a decoy server, and a second decoy listens on a different port;
//     both decoys count connections.
//  2. Most tests share a server, and thus an origin, so that the browser compiles the programs only
//     once. The origin's storage is emptied before each test (openPage). Tests of first visits, of
//     offline use and of full storage start their own server (firstVisit), so that storage, service
//     worker and caches are empty.
//  3. Every page and worker is monitored: a console error, an exception, a violation of the content
//     security policy or a request to another origin fails the test.
//  4. Timeouts are long enough for the slowest machines, so no test fails because a machine is
//     slow.
//
// Most tests use the page that the command serves. hostings_test.go tests the other ways to serve
// the page: a static host without headers, Cloudflare's runtime, the unzipped archive and the
// single file. TestPolicy uses every feature of the page in each of these ways.
//
// Environment variables: STACKGLASS_PROGRAM is the path of the command to test (default
// bin/stackglass), STACKGLASS_CHROMIUM is the path of the browser, and STACKGLASS_DATA is the
// folder of real traces (default ../shared/data). If the folder of real traces does not exist, the
// tests use a small trace.
package e2e
