package decode

import (
	"strings"
	"testing"
)

func TestErrorClass(t *testing.T) {
	for reason, want := range map[string]string{
		"SMTPAuthenticationError: 535 wrong": "SMTPAuthenticationError",
		"Net::ReadTimeout":                   "Net::ReadTimeout",
		`App\Exceptions\Declined: a: b`:      `App\Exceptions\Declined`,
		"*url.Error: no":                     "",
		"dial tcp: connection refused":       "",
		"mail: no":                           "",
		"":                                   "", ": a": "", "E": "", "12A: b": "", "Größe: b": "",
		strings.Repeat("Ab", 51) + ": c": "",
	} {
		if got := ErrorClass(reason); got != want {
			t.Errorf("%q: %q, want %q", reason, got, want)
		}
	}
}

// Reason finds the error in the bodies of each framework.
func TestReason(t *testing.T) {
	for body, want := range map[string]string{
		`{"class":"Mail","args":[1],"error_class":"Net::ReadTimeout","error_message":"Net::ReadTimeout with #<TCPSocket>"}`:                                                                                                                                     "Net::ReadTimeout: Net::ReadTimeout with #<TCPSocket>",
		`{"status":"FAILURE","result":{"exc_type":"ValueError","exc_message":["bad\u001b[31m id\nmore"],"exc_module":"builtins"}}`:                                                                                                                              "ValueError: bad [31m id",
		`{"uuid":"a","exception":"ErrorException: Undefined index in /app/a.php:7\nStack trace:\n#0"}`:                                                                                                                                                          "ErrorException: Undefined index in /app/a.php:7",
		`{"body":"{}","headers":{"type":"App\\Mail","X-Message-Stamp-Symfony\\Component\\Messenger\\Stamp\\ErrorDetailsStamp":"[{\"exceptionClass\":\"First\"},{\"exceptionClass\":\"RuntimeException\",\"exceptionCode\":0,\"exceptionMessage\":\"boom\"}]"}}`: "RuntimeException: boom",
		`{"body":"O:8:\"Envelope\":1:{s:6:\"stamps\";a:1:{i:0;O:17:\"ErrorDetailsStamp\":2:{s:14:\"exceptionClass\";s:5:\"Error\";s:16:\"exceptionMessage\";s:4:\"boom\";}}}"}`:                                                                                 "Error: boom",
		`{"error_class":"A"}`: "A",
		`{"error_class":7}`:   "",
		`error_class`:         "",
		`{"args":[1]}`:        "",
		`{"error_class":"A","error_message":"` + strings.Repeat("x", 300) + `"}`: "A: " + strings.Repeat("x", 196) + "…",
	} {
		if got := Reason([]byte(body)); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}
