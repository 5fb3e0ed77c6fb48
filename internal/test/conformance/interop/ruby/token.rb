# beaneater with a token, which is the body of the first put.

require 'beaneater'

def same(want, got)
  raise "got #{got.inspect}, want #{want.inspect}" unless want == got
end

c = Beaneater.new(ENV.fetch('ADDR'))
same '0', c.tubes['default'].put(ENV.fetch('TOKEN'))[:id] # before the first use
tube = c.tubes['mail']
id = tube.put('hello')[:id]
job = tube.reserve(0)
same [id, 'hello'], [job.id, job.body]
job.delete
begin
  tube.reserve(0)
  raise 'the token is a job'
rescue Beaneater::TimedOutError
  nil
end

same 'UNAUTHORIZED', Beaneater.new(ENV.fetch('ADDR')).tubes['default'].put('not a token')[:status]
puts 'ok'
