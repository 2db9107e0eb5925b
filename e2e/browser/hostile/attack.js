// attack tries all that a page can do to the server at an address, and returns how each try ended:
// blocked, opaque for an answer that cannot be read, or what it got. A change is seen on the server.
async function attack(at) {
  const http = "http://" + at, caller = http + "/v1/caller", teams = http + "/v1/teams", tasks = teams + "/demo/tasks";
  const team = JSON.stringify({name: "evil"}), task = JSON.stringify({subject: "evil"});
  const within = (ms, what) => Promise.race([what, new Promise(f => setTimeout(f, ms, "blocked"))]);
  const tries = {};
  const got = async (url, options) => {
    const r = await fetch(url, options);
    if (r.type === "opaque" || r.type === "opaqueredirect") return "opaque";
    return r.ok ? "read " + (await r.text()).slice(0, 80) : "blocked";
  };
  const load = (tag, set) => () => within(1500, new Promise(f => {
    const e = document.createElement(tag);
    e.onload = () => f(tag === "iframe" ? "frame" : "loaded");
    e.onerror = () => f("blocked");
    set(e);
    document.body.append(e);
  }));
  tries["fetch"] = () => got(caller);
  tries["fetch with the cookie"] = () => got(caller, {credentials: "include"});
  tries["fetch without CORS"] = () => got(caller, {mode: "no-cors", credentials: "include"});
  tries["fetch of all teams"] = () => got(teams, {credentials: "include"});
  tries["fetch with a token"] = () => got(caller, {headers: {Authorization: "Bearer x"}});
  tries["fetch with an own header"] = () => got(caller, {headers: {"X-Evil": "1"}, credentials: "include"});
  tries["fetch by a redirect"] = () => got("/redirect?to=" + encodeURIComponent(caller), {credentials: "include"});
  tries["fetch from a sandboxed frame"] = () => within(1500, new Promise(f => {
    addEventListener("message", m => f(m.data), {once: true});
    const e = document.createElement("iframe");
    e.sandbox = "allow-scripts";
    e.srcdoc = `<script>fetch("${caller}",{credentials:"include"}).then(r=>r.text()).then(t=>parent.postMessage("read "+t,"*"),()=>parent.postMessage("blocked","*"))</` + "script>";
    document.body.append(e);
  }));
  for (const [path, body] of [[teams, team], [tasks, task]]) {
    const where = path === teams ? "a team" : "a task";
    tries["simple POST of " + where] = () => got(path, {method: "POST", body, credentials: "include"});
    tries["simple POST without CORS of " + where] = () => got(path, {method: "POST", body, mode: "no-cors", credentials: "include"});
    tries["POST as JSON of " + where] = () => got(path, {method: "POST", body, credentials: "include", headers: {"Content-Type": "application/json"}});
    tries["POST by a redirect of " + where] = () => got("/redirect?to=" + encodeURIComponent(path), {method: "POST", body, credentials: "include"});
    tries["beacon of " + where] = async () => { navigator.sendBeacon(path, new Blob([body], {type: "text/plain"})); return "opaque"; };
    for (const enctype of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
      tries["form as " + enctype + " of " + where] = () => within(1000, new Promise(f => {
        const frame = document.createElement("iframe"), form = document.createElement("form"), input = document.createElement("input");
        frame.name = "f" + Math.random();
        Object.assign(form, {method: "POST", action: path, enctype, target: frame.name});
        Object.assign(input, {name: body.slice(0, -1) + ',"x":"', value: '"}'});
        form.append(input);
        document.body.append(frame, form);
        form.submit();
        frame.onload = () => { try { f("read " + frame.contentDocument.body.innerText); } catch { f("blocked"); } };
      }));
    }
  }
  for (const what of ["wind-down", "pause", "resume"]) { // they need no body, so no content type stops them
    tries["POST of " + what] = () => got(teams + "/demo/" + what, {method: "POST", mode: "no-cors", credentials: "include"});
    tries["beacon of " + what] = async () => { navigator.sendBeacon(teams + "/demo/" + what); return "opaque"; };
    tries["form of " + what] = async () => {
      const frame = document.createElement("iframe"), form = document.createElement("form");
      frame.name = "f" + Math.random();
      Object.assign(form, {method: "POST", action: teams + "/demo/" + what, target: frame.name});
      document.body.append(frame, form);
      form.submit();
      await new Promise(f => setTimeout(f, 500));
      return "opaque";
    };
  }
  tries["POST that cleans up"] = () => got(teams + "/demo/cleanup", {method: "POST", body: "{}", mode: "no-cors", credentials: "include"});
  tries["PUT"] = () => got(http + "/v1/server/teams/demo", {method: "PUT", credentials: "include"});
  tries["DELETE"] = () => got(http + "/v1/server/teams/demo", {method: "DELETE", credentials: "include"});
  tries["login code"] = () => got(http + "/v1/login-codes", {method: "POST", body: "{}", credentials: "include"});
  for (const path of ["/v1/teams/demo/events", "/board/events?at=/v1/watch"]) {
    tries["events at " + path] = () => within(1500, new Promise(f => {
      const e = new EventSource(http + path, {withCredentials: true});
      e.onopen = () => f("open");
      e.onmessage = m => f("read " + m.data);
      e.onerror = () => { e.close(); f("blocked"); };
    }));
  }
  for (const path of ["/ws", "/v1/ws", "/board/streams", "/v1/teams/demo/events"]) {
    tries["WebSocket at " + path] = () => within(1500, new Promise(f => {
      const e = new WebSocket("ws://" + at + path);
      e.onopen = () => f("open");
      e.onerror = () => f("blocked");
    }));
  }
  tries["image"] = load("img", e => e.src = caller);
  tries["script"] = load("script", e => e.src = caller);
  tries["style sheet"] = load("link", e => Object.assign(e, {rel: "stylesheet", href: caller}));
  tries["frame"] = () => within(1500, new Promise(f => {
    const e = document.createElement("iframe");
    e.src = caller;
    e.onload = () => { try { f(/token/.test(e.contentDocument.body.innerText) ? "read " + e.contentDocument.body.innerText : "blocked"); } catch { f("blocked"); } };
    document.body.append(e);
  }));
  tries["window"] = async () => {
    const w = open(caller);
    if (!w) return "blocked";
    await new Promise(f => setTimeout(f, 700));
    try { return /token/.test(w.document.body.innerText) ? "read " + w.document.body.innerText : "blocked"; } catch { return "blocked"; } finally { w.close(); }
  };
  return Promise.all(Object.entries(tries).map(async ([name, what]) => {
    try { return {name, result: await what()}; } catch { return {name, result: "blocked"}; }
  }));
}
