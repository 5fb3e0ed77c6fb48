package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// allWidths contains the widths of phones, tablets, half screens, laptops and desktops.
var allWidths = []int64{320, 360, 414, 768, 853, 1024, 1280, 1920}

// die makes a policy move a job to the dead tube of a tube.
func (s *server) die(tube, body string) (id string) {
	s.t.Helper()
	s.say("use " + tube)
	id = strings.TrimPrefix(s.say("put 1024 0 600", body), "INSERTED ")
	if got := s.say("reserve-job " + id); !strings.HasPrefix(got, "RESERVED") {
		s.t.Fatal(got)
	}
	s.replies.ReadString('\n') // reads the body
	s.say("release " + id + " 1024 0")
	return id
}

// setDead makes the policy of a tube move jobs to its dead tube after one attempt.
func (s *server) setDead(tube string) {
	s.t.Helper()
	s.patch("/policies/"+tube, `{"set":{"max-attempts":"1","exhausted":"move","dead-tube":"`+tube+`.dead"}}`)
}

// The header and every page fit into the window at every width: nothing is cut off, and
// no page scrolls horizontally.
func TestWidths(t *testing.T) {
	s := start(t, secured(t, "operator-of-the-night-shift@example.com", false)...)
	s.token = testToken
	s.say("auth " + testToken)
	s.setDead("payments")
	s.change("PUT", "/schedules/nightly-report-of-a-tenant", `{"settings":{"cron":"*/15 9-17 1,15 jan-jun mon-fri","timezone":"America/Argentina/ComodRivadavia","tube":"a-tube-with-a-very-long-name-of-a-tenant-in-a-region-of-the-world","body":"x"}}`)
	for i := range 12 {
		s.die("payments", fmt.Sprintf(`{"class":"Charge","args":[%d,"customer-%d@example.com"]}`, i, i))
	}
	s.put("a-tube-with-a-very-long-name-of-a-tenant-in-a-region-of-the-world", `{"displayName":"App\\Jobs\\SendMail","job":"x","data":{"to":"ann@example.com"}}`, 3)
	s.put("mail", strings.Repeat("a body without any structure ", 20), 60)
	id := strings.TrimPrefix(s.say("put 1 0 60", `{"displayName":"App\\Jobs\\Tenants\\SendMailToEveryone","data":{}}`), "INSERTED ")
	s.say("reserve-job " + id)
	s.replies.ReadString('\n') // reads the body
	s.say("note " + id + " SMTPAuthenticationError: 535 5.7.8 Username and password not accepted for operator@a-very-long-host-name.of-a-tenant.example.com (https://support.example.com/mail/?p=BadCredentials)")
	s.say("bury " + id + " 1")
	held := strings.TrimPrefix(s.say("put 1024 0 600", strings.Repeat("a body without any structure ", 20)), "INSERTED ")
	s.say("watch mail")
	s.say("reserve-job " + held)
	s.replies.ReadString('\n') // reads the body
	ctx := browse(t)
	do(t, ctx, visit(s.url("login")), chromedp.SendKeys("input[name=token]", testToken+"\r"))
	until(t, ctx, "location.pathname == '/console/' && !document.querySelector('#help').hidden")
	for name, path := range map[string]string{
		"overview": "", "tubes": "tubes", "dead-tube": "tube/payments.dead", "tube": "tube/mail?state=ready", "reserved": "tube/mail?state=reserved", "job": "job/1", "edit": "job/1/edit", "put": "tube/mail/put",
		"search": "search?q=customer", "failures": "failures", "working": "working", "policies": "policies", "schedules": "schedules", "schedule": "schedule?name=nightly-report-of-a-tenant", "connections": "connections?only=holding&sort=-held", "connection": "connection/1", "activity": "activity", "server": "server", "policy": "tube/payments/policy",
		"confirm": "confirm?do=pause-tube&tube=mail", "redrive": "confirm?do=redrive-jobs&tube=payments.dead&state=buried", "find": "find?q=x", "nothing": "job/99",
	} {
		for _, width := range allWidths {
			do(t, ctx, chromedp.EmulateViewport(width, 900), visit(s.url(path)))
			until(t, ctx, "!document.querySelector('#help').hidden")
			const outside = `[...document.querySelectorAll("header a, header button, header select, main .button, main h1, main button")].filter(e => !e.closest(".sheet, .pick, .choices, .menu, .columns, [hidden]") && e.checkVisibility() &&
				(r => r.right > innerWidth + 1 || r.left < -1)(e.getBoundingClientRect())).map(e => e.outerHTML.slice(0, 120)).join("\n")`
			if wide := eval[int](t, ctx, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); wide > 0 {
				t.Errorf("%s at %d px is %d px wider than the window", name, width, wide)
			}
			if cut := eval[string](t, ctx, outside); cut != "" {
				t.Errorf("%s at %d px: outside of the window:\n%s", name, width, cut)
			}
			if name == "connections" && eval[float64](t, ctx, "document.querySelector('td[data-label=\"Held for\"]').getBoundingClientRect().right") > float64(width) {
				t.Errorf("at %d px the column of the held jobs is outside of the window", width)
			}
			if *shots == "" {
				continue
			}
			shot, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
			if err == nil {
				err = os.WriteFile(filepath.Join(*shots, fmt.Sprintf("width-%s-%d.png", name, width)), shot, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}
