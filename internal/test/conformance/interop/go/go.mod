module github.com/beanpole-mq/beanpole/internal/test/conformance/interop/go

go 1.26.0

require (
	github.com/beanstalkd/go-beanstalk v0.2.0
	github.com/mitchellh/mapstructure v1.5.0
	gopkg.in/yaml.v2 v2.4.0
)
