package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/beanpole-mq/beanpole/bench/load"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

func tubeName(i int) string { return fmt.Sprintf("tenant-%d", i) }

// fill puts jobs into tubes, as many into each.
func fill(ctx context.Context, addr string, tubes, jobs int) error {
	d, err := load.Dial(ctx, addr)
	if err != nil {
		return err
	}
	defer d.Close()
	each := jobs / tubes
	for tube := range tubes {
		if _, err := d.Do(wire.AppendUse(nil, tubeName(tube)), wire.Using); err != nil {
			return err
		}
		err := d.Pipeline(each, func(out []byte, i int) []byte {
			body := fmt.Sprintf(`{"job":"App\\Jobs\\SendMail","queue":"tenant-%d","data":{"to":"user%d@example.com","template":"welcome","locale":"en"},"attempts":0,"n":%d,"padding":"%s"}`,
				tube, i, tube*each+i, strings.Repeat("x", 60))
			return wire.AppendPut(out, uint32(1000+i%3), 0, 60, []byte(body))
		}, nil, wire.Inserted)
		if err != nil {
			return err
		}
	}
	return nil
}
