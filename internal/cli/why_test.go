package cli_test

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhyText explains the two errors of a first launch on AWS, verbatim from Karpenter's
// log: the first without a decoder, the second with an STS that decodes it.
func TestWhyText(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "",
	} {
		t.Setenv(name, value)
	}
	expectExplanation(t, "launch-denied", "launch-denied.golden.txt")
	expectExplanation(t, "launch-profile", "launch-profile.golden.txt")

	decoded, err := os.ReadFile(filepath.Join("testdata", "why", "launch-denied.decoded.json"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `<DecodeAuthorizationMessageResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><DecodeAuthorizationMessageResult><DecodedMessage>%s</DecodedMessage></DecodeAuthorizationMessageResult></DecodeAuthorizationMessageResponse>`,
			html.EscapeString(string(decoded)))
	}))
	defer server.Close()
	t.Setenv("AWS_ENDPOINT_URL", server.URL)
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	expectExplanation(t, "launch-denied", "launch-denied.decoded.golden.txt")

	status, got, _ := runCroft(t, "all is well\n", "why", "-f", "-")
	if status != 0 || !strings.Contains(got, "has no entry for this text") {
		t.Errorf("exit status %d for a text in which nothing is wrong: %s", status, got)
	}
	if status, got, _ = runCroft(t, "", "why", "-f", "-", "-o", "json"); status != 0 || strings.TrimSpace(got) != "{\n  \"findings\": []\n}" {
		t.Errorf("exit status %d for nothing: %s", status, got)
	}
}

// expectExplanation compares the explanation of a log with the golden file.
func expectExplanation(t *testing.T, log, golden string) {
	t.Helper()
	status, got, stderr := runCroft(t, "", "why", "-f", filepath.Join("testdata", "why", log+".log"))
	if status != 1 || stderr != "" {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	golden = filepath.Join("testdata", "why", golden)
	assertGolden(t, golden, got)
}
