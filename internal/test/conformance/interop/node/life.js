// The life of a job, for all Node clients. Each check gets two new connections and
// its own tube. An object adapts a client. It contains
//
//   name                       of the npm package
//   connect(host, port)        a connection with the methods used below;
//                              bodies are Buffers, ids are strings, a refusal is
//                              an Error with the server's reply in its message or code
//
//   cannot                     names of checks that the library does not support
//
// A connection that lacks a method skips the checks that need it. The output
// is TAP, which ../run counts.
'use strict'

const assert = require('assert')

const [host, port] = (process.env.ADDR || '127.0.0.1:11300').split(':')
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))
const refused = (promise, word) => assert.rejects(promise, err => `${err.code} ${err.message}`.includes(word) || assert.fail(err))
const text = job => job.body.toString()

const checks = {
  async 'put, reserve, delete'(p, w) {
    const id = await p.put('hello')
    const job = await w.reserve()
    assert.strictEqual(job.id, id)
    assert.strictEqual(text(job), 'hello')
    await w.delete(id)
    await refused(w.delete(id), 'NOT_FOUND')
  },

  async 'the smallest priority comes first, then the oldest'(p, w) {
    await p.put('third', { pri: 10 })
    await p.put('first', { pri: 1 })
    await p.put('second', { pri: 1 })
    for (const want of ['first', 'second', 'third']) assert.strictEqual(text(await w.reserve()), want)
  },

  async 'the oldest of all watched tubes'(p, w, tube) {
    await w.watch(tube + '-2')
    for (const [body, suffix] of [['1', ''], ['2', '-2'], ['3', '']]) {
      await p.use(tube + suffix)
      await p.put(body)
    }
    for (const want of ['1', '2', '3']) assert.strictEqual(text(await w.reserve()), want)
  },

  async 'a delayed job becomes ready at its time'(p, w) {
    await p.put('later', { delay: 1 })
    await refused(w.reserveWithTimeout(0), 'TIMED_OUT')
    assert.strictEqual(text(await w.reserveWithTimeout(3)), 'later')
  },

  async 'a waiting worker is woken'(p, w) {
    const job = w.reserve()
    await sleep(50)
    await p.put('wake up')
    assert.strictEqual(text(await job), 'wake up')
  },

  async 'release with a priority and a delay'(p, w) {
    const id = await p.put('again')
    await w.reserve()
    await w.release(id, 7, 100)
    const s = await p.statsJob(id)
    assert.deepStrictEqual([s.state, s.pri, s.delay, s['time-left'], s.releases], ['delayed', 7, 100, 99, 1])
    await refused(w.release(id, 0, 0), 'NOT_FOUND')
  },

  async 'bury and kick-job'(p, w) {
    const id = await p.put('bad')
    await w.reserve()
    await w.bury(id, 3)
    assert.strictEqual((await p.statsJob(id)).state, 'buried')
    await p.kickJob(id)
    assert.strictEqual((await p.statsJob(id)).state, 'ready')
    await refused(p.kickJob(id), 'NOT_FOUND')
  },
  'bury and kick-job needs': ['kickJob'],

  async 'kick counts'(p, w) {
    for (const body of ['a', 'b', 'c']) await p.put(body, { delay: 100 })
    assert.strictEqual(Number(await p.kick(2)), 2)
    assert.strictEqual(Number(await p.kick(9)), 1)
    assert.strictEqual(Number(await p.kick(9)), 0)
  },
  'kick counts needs': ['kick'],

  async 'reserve-job'(p, w) {
    const id = await p.put('by id', { delay: 100 })
    assert.strictEqual(text(await w.reserveJob(id)), 'by id')
    await refused(p.reserveJob(id), 'NOT_FOUND')
  },
  'reserve-job needs': ['reserveJob'],

  async 'touch restarts the TTR; time-left is rounded down'(p, w) {
    const id = await p.put('slow', { ttr: 10 })
    await w.reserve()
    assert.strictEqual((await w.statsJob(id))['time-left'], 9)
    await sleep(1100)
    assert.strictEqual((await w.statsJob(id))['time-left'], 8)
    await w.touch(id)
    assert.strictEqual((await w.statsJob(id))['time-left'], 9)
    await refused(p.touch(id), 'NOT_FOUND')
  },

  async 'DEADLINE_SOON'(p, w) {
    await p.put('short', { ttr: 1 })
    await w.reserve()
    await refused(w.reserveWithTimeout(0), 'DEADLINE_SOON')
  },
  'DEADLINE_SOON needs': ['tellsDeadlines'],

  async 'a time to run of 0 becomes 1'(p) {
    assert.strictEqual((await p.statsJob(await p.put('x', { ttr: 0 }))).ttr, 1)
  },

  async 'peek and the heads'(p, w) {
    for (const state of ['Ready', 'Delayed', 'Buried']) await refused(p['peek' + state](), 'NOT_FOUND')
    const buried = await p.put('buried')
    await w.reserve()
    await w.bury(buried, 0)
    const ready = await p.put('ready')
    const delayed = await p.put('delayed', { delay: 100 })
    assert.strictEqual(text(await p.peek(ready)), 'ready')
    assert.deepStrictEqual(
      [(await p.peekReady()).id, (await p.peekDelayed()).id, (await p.peekBuried()).id],
      [ready, delayed, buried])
    await refused(p.peek('999999'), 'NOT_FOUND')
  },

  async 'unicode body'(p, w) {
    await p.put('naïve ☕ 日本 🫘')
    assert.strictEqual(text(await w.reserve()), 'naïve ☕ 日本 🫘')
  },

  async 'binary body'(p, w) {
    const body = Buffer.from([...Array(256).keys(), 13, 10, 0, 13, 10])
    await p.put(body)
    assert.deepStrictEqual((await w.reserve()).body, body)
  },

  async 'body with commands in it'(p, w) {
    await p.put('delete 1\r\nquit\r\n')
    assert.strictEqual(text(await w.reserve()), 'delete 1\r\nquit\r\n')
  },

  async 'the largest body'(p, w) {
    await p.put(Buffer.alloc(65535, 'x'))
    assert.strictEqual((await w.reserve()).body.length, 65535)
  },

  async 'JOB_TOO_BIG, and the connection stays open'(p, w) {
    await refused(p.put(Buffer.alloc(65536, 'x')), 'JOB_TOO_BIG')
    await p.put('small')
    assert.strictEqual(text(await w.reserve()), 'small')
  },

  async 'NOT_FOUND and NOT_IGNORED'(p, w, tube) {
    await refused(p.delete('999999'), 'NOT_FOUND')
    await refused(p.release('999999', 0, 0), 'NOT_FOUND')
    await refused(p.bury('999999', 0), 'NOT_FOUND')
    await refused(p.touch('999999'), 'NOT_FOUND')
    await refused(p.statsJob('999999'), 'NOT_FOUND')
    await refused(p.statsTube('no-such-tube'), 'NOT_FOUND')
    await refused(w.ignore(tube), 'NOT_IGNORED')
  },

  async 'lists'(p, w, tube) {
    assert.strictEqual(await p.listTubeUsed(), tube)
    assert.deepStrictEqual(await w.listTubesWatched(), [tube])
    const tubes = await p.listTubes()
    assert.strictEqual(tubes[0], 'default')
    assert(tubes.includes(tube))
  },

  async 'stats are numbers and know of the last command'(p) {
    const before = await p.stats()
    await p.put('x')
    const after = await p.stats()
    assert.strictEqual(after['total-jobs'], before['total-jobs'] + 1)
    assert.strictEqual(after['cmd-stats'], before['cmd-stats'] + 1)
    assert.match(String(after.version), /^\d+\.\d+$/)
    assert.strictEqual(after['max-job-size'], 65535)
  },

  async 'stats-tube'(p, w, tube) {
    await p.put('x')
    await p.put('y', { delay: 9 })
    await p.delete(await p.put('z'))
    const s = await p.statsTube(tube)
    assert.deepStrictEqual(
      [s.name, s['current-jobs-ready'], s['current-jobs-delayed'], s['total-jobs'], s['cmd-delete'], s['current-using'], s['current-watching']],
      [tube, 1, 1, 3, 1, 1, 1])
    assert.strictEqual(Object.keys(s).length, 14)
  },

  async 'stats-job'(p, w, tube) {
    const id = await p.put('x', { pri: 5, ttr: 7 })
    const s = await p.statsJob(id)
    assert.deepStrictEqual(s, {
      id: Number(id), tube, state: 'ready', pri: 5, age: 0, delay: 0, ttr: 7, 'time-left': 0,
      file: s.file, // 0 without a journal
      reserves: 0, timeouts: 0, releases: 0, buries: 0, kicks: 0
    })
  },

  async 'pause, and a pause of 0 resumes at once'(p, w, tube) {
    await p.put('x')
    await p.pauseTube(tube, 100)
    await refused(w.reserveWithTimeout(0), 'TIMED_OUT')
    await p.pauseTube(tube, 0)
    assert.strictEqual(text(await w.reserveWithTimeout(0)), 'x')
  },

  async 'many commands at once are answered in order'(p, w) {
    const ids = await Promise.all([...Array(200).keys()].map(i => p.put('job ' + i)))
    const jobs = await Promise.all(ids.map(() => w.reserveWithTimeout(0)))
    assert.deepStrictEqual(jobs.map(text), [...Array(200).keys()].map(i => 'job ' + i))
    assert.deepStrictEqual(jobs.map(j => j.id), ids)
  },

  async 'the third release buries the job if a policy requires it'(p, w) {
    await p.use('node-acts')
    await w.watch('node-acts')
    const id = await p.put('again')
    for (let n = 0; n < 3; n++) {
      await w.reserveWithTimeout(1)
      await w.release(id, 0, 0)
    }
    const s = await p.statsJob(id)
    assert.deepStrictEqual([s.state, s.releases], ['buried', 3])
  },

  async 'a closed connection releases its jobs to other workers'(p, w, tube, connect) {
    await p.put('mine')
    const gone = await connect()
    await gone.watch(tube)
    await gone.reserve()
    await gone.quit()
    assert.strictEqual(text(await w.reserveWithTimeout(3)), 'mine')
  }
}

if (!process.env.POLICIES) delete checks['the third release buries the job if a policy requires it']

module.exports = async function life(client) {
  const connect = () => client.connect(host, Number(port))
  const probe = await connect()
  const names = Object.keys(checks).filter(n => !n.endsWith(' needs') &&
    (checks[n + ' needs'] || []).every(method => probe[method]) && !(client.cannot || []).includes(n))
  await probe.quit()
  console.log(`# ${client.name} ${require(client.name + '/package.json').version}`)
  console.log(`1..${names.length}`)
  for (const [i, name] of names.entries()) {
    let result = `ok ${i + 1} - ${name}`
    let p, w
    try {
      const tube = 'tube-' + i
      p = await connect()
      w = await connect()
      await p.use(tube)
      await w.watch(tube)
      await w.ignore('default')
      const late = sleep(5000).then(() => { throw new Error('no answer in 5 seconds') })
      await Promise.race([checks[name](p, w, tube, connect), late])
    } catch (err) {
      result = `not ${result}: ${String(err && err.message).replace(/\s+/g, ' ').slice(0, 150)}`
    }
    console.log(result)
    for (const c of [p, w]) if (c) Promise.resolve(c.quit()).catch(() => {})
  }
  process.exit(0)
}
