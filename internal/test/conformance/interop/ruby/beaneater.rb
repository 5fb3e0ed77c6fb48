# The life of a job with beaneater.

require 'beaneater'

ADDR = ENV.fetch('ADDR')
NOBODY = 999_999

def same(want, got)
  raise "got #{got.inspect}, want #{want.inspect}" unless want == got
end

def refused(error)
  yield
rescue error
  nil
else
  raise "no #{error}"
end

CHECKS = {
  'put, reserve, delete' => lambda do |c, t, _|
    id = t.put('hello')[:id]
    job = t.reserve(0)
    same [id, 'hello'], [job.id, job.body]
    job.delete
    refused(Beaneater::NotFoundError) { job.delete }
    same nil, c.jobs.find(id)
  end,
  'the smallest priority comes first, then the oldest' => lambda do |_, t, _|
    t.put('third', pri: 10)
    t.put('first', pri: 1)
    t.put('second', pri: 1)
    same(%w[first second third], 3.times.map { t.reserve(0).body })
  end,
  'the oldest of all watched tubes' => lambda do |c, t, name|
    other = c.tubes[name + '-2']
    t.put('1')
    other.put('2')
    t.put('3')
    c.tubes.watch!(name, name + '-2')
    same(%w[1 2 3], 3.times.map { c.tubes.reserve(0).body })
  end,
  'a delayed job becomes ready at its time' => lambda do |_, t, _|
    t.put('later', delay: 1)
    refused(Beaneater::TimedOutError) { t.reserve(0) }
    same 'later', t.reserve(3).body
  end,
  'release with a priority and a delay' => lambda do |_, t, _|
    t.put('again')
    job = t.reserve(0)
    job.release(pri: 7, delay: 100)
    s = job.stats
    same ['delayed', 7, 100, 99, 1], [s.state, s.pri, s.delay, s.time_left, s.releases]
  end,
  'bury, peek, kick' => lambda do |_, t, _|
    t.put('bad')
    job = t.reserve(0)
    job.bury(pri: 3)
    same job.id, t.peek(:buried).id
    t.kick(10)
    same [nil, job.id], [t.peek(:buried), t.peek(:ready).id]
    same ['ready', 1, 3], [job.stats.state, job.stats.kicks, job.stats.pri]
  end,
  'kick-job' => lambda do |c, t, _|
    job = c.jobs.find(t.put('x', delay: 100)[:id])
    job.kick
    same 'ready', job.stats.state
    refused(Beaneater::NotFoundError) { job.kick }
  end,
  'touch restarts the TTR; time-left is rounded down' => lambda do |_, t, _|
    t.put('slow', ttr: 10)
    job = t.reserve(0)
    same 9, job.stats.time_left
    sleep 1.1
    same 8, job.stats.time_left
    job.touch
    same 9, job.stats.time_left
  end,
  'DEADLINE_SOON' => lambda do |_, t, _|
    t.put('short', ttr: 1)
    t.reserve(0)
    refused(Beaneater::DeadlineSoonError) { t.reserve(0) }
  end,
  'a ttr of 0 becomes 1' => ->(c, t, _) { same 1, c.jobs.find(t.put('x', ttr: 0)[:id]).ttr },
  'unicode, binary and empty bodies' => lambda do |_, t, _|
    all = (0..255).map(&:chr).map(&:b).join + "\r\n\0\r\n".b
    ['naïve ☕ 日本 🫘', all, '', "delete 1\r\nquit\r\n"].each do |body|
      t.put(body)
      same body.b, t.reserve(0).body.b
    end
  end,
  'the largest body works; a larger one gets JOB_TOO_BIG, and the connection stays open' => lambda do |_, t, _|
    t.put('x' * 65_535)
    same 65_535, t.reserve(0).body.bytesize
    refused(Beaneater::JobTooBigError) { t.put('x' * 65_536) }
    t.put('small')
    same 'small', t.reserve(0).body
  end,
  'errors are exceptions of their kind' => lambda do |c, t, name|
    t.put('x')
    same nil, c.jobs.find(NOBODY)
    refused(Beaneater::NotFoundError) { c.tubes['no-such-tube'].stats }
    refused(Beaneater::NotFoundError) { c.connection.transmit("touch #{NOBODY}") }
    refused(Beaneater::BadFormatError) { c.connection.transmit('delete x') }
    refused(Beaneater::UnknownCommandError) { c.connection.transmit('nonsense') }
    c.tubes.watch!(name)
    refused(Beaneater::NotIgnoredError) { c.connection.transmit("ignore #{name}") }
  end,
  'lists' => lambda do |c, t, name|
    t.put('x')
    c.tubes.watch!(name)
    same [name], c.tubes.watched.map(&:name)
    same 'default', c.tubes.all.first.name
    same true, c.tubes.all.map(&:name).include?(name)
  end,
  'stats are numbers and know of the last command' => lambda do |c, t, _|
    before = c.stats.total_jobs
    t.put('x')
    same before + 1, c.stats.total_jobs
    same 65_535, c.stats.max_job_size
    same true, c.stats.version.to_s.match?(/\A\d+\.\d+\z/)
  end,
  'stats-tube' => lambda do |c, t, name|
    t.put('x')
    t.put('y', delay: 9)
    c.jobs.find(t.put('z')[:id]).delete
    s = t.stats
    same [name, 1, 1, 3, 1], [s.name, s.current_jobs_ready, s.current_jobs_delayed, s.total_jobs, s.cmd_delete]
  end,
  'pause, and a pause of 0 resumes at once' => lambda do |_, t, _|
    t.put('x')
    t.pause(100)
    refused(Beaneater::TimedOutError) { t.reserve(0) }
    t.pause(0)
    same 'x', t.reserve(0).body
  end,
  'clear empties a tube' => lambda do |c, t, _|
    t.put('ready')
    t.put('delayed', delay: 100)
    t.put('buried', pri: 0)
    t.reserve(0).bury
    t.clear
    s = t.stats
    same [0, 0, 0], [s.current_jobs_ready, s.current_jobs_delayed, s.current_jobs_buried]
  end,
  'the third release buries the job if a policy requires it' => lambda do |c, _, name|
    t = c.tubes["#{name}-acts"]
    id = t.put('again')[:id]
    3.times { t.reserve(1).release }
    s = c.jobs.find(id).stats
    same ['buried', 3], [s.state, s.releases]
  end,
  'a closed connection releases its jobs to other workers' => lambda do |_, t, name|
    t.put('mine')
    gone = Beaneater.new(ADDR)
    gone.tubes[name].reserve(0)
    gone.close
    same 'mine', t.reserve(3).body
  end
}.reject { |name, _| name.include?('policy') && !ENV['POLICIES'] }

puts "# beaneater #{Beaneater::VERSION}", "1..#{CHECKS.size}"
CHECKS.each.with_index(1) do |(name, check), n|
  client = Beaneater.new(ADDR)
  begin
    check.call(client, client.tubes["ruby-#{n}"], "ruby-#{n}")
    puts "ok #{n} - #{name}"
  rescue StandardError => e
    puts "not ok #{n} - #{name}: #{e.class} #{e.message}".gsub(/\s+/, ' ')[0, 200]
  ensure
    client.close
  end
end
