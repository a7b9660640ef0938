fetch("api/sessions").then(r=>r.text()).then(t=>{document.getElementById("app").textContent=t})
