package iam_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"croft.dev/croft/internal/cloud/iam"
)

// TestDecode uses an STS server on the loopback interface, which answers as AWS's API
// reference describes.
func TestDecode(t *testing.T) {
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.FormValue("Action") + " " + r.FormValue("EncodedMessage")
		if r.FormValue("EncodedMessage") != "abc" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprint(w, `<ErrorResponse><Error><Type>Sender</Type><Code>InvalidAuthorizationMessageException</Code><Message>Message is not valid</Message></Error></ErrorResponse>`)
			return
		}
		_, _ = fmt.Fprint(w, `<DecodeAuthorizationMessageResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><DecodeAuthorizationMessageResult><DecodedMessage>{"allowed":false}</DecodedMessage></DecodeAuthorizationMessageResult></DecodeAuthorizationMessageResponse>`)
	}))
	defer server.Close()
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": server.URL, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	got, err := iam.Decode(t.Context(), "abc")
	if err != nil || got != `{"allowed":false}` {
		t.Errorf("decoded to %q, %v", got, err)
	}
	if asked != "DecodeAuthorizationMessage abc" {
		t.Errorf("asked for %s", asked)
	}
	if _, err := iam.Decode(t.Context(), "xyz"); err == nil || err.Error() != "InvalidAuthorizationMessageException: Message is not valid" {
		t.Errorf("a message that is none: %v", err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	if _, err := iam.Decode(t.Context(), "abc"); err == nil || err.Error() != "there are no AWS credentials" {
		t.Errorf("without credentials: %v", err)
	}
}
