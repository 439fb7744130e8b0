/*
 * Elements from plain calls. Text always becomes a text node and never markup, because names of
 * pools, hosts and devices come from outside. Style goes through the CSSOM, which a strict
 * content security policy allows.
 */
export function element(tag, properties = {}, ...children) {
        const made = document.createElement(tag);
        for (const [name, value] of Object.entries(properties)) {
                if (value === null || value === undefined || value === false)
                        continue;
                if (name === 'style')
                        for (const [key, length] of Object.entries(value))
                                made.style.setProperty(key, length);
                else
                        made.setAttribute(name, value === true ? '' : String(value));
        }
        made.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false));
        return made;
}

/* The same for SVG. */
export function drawing(tag, properties = {}, ...children) {
        const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
        for (const [name, value] of Object.entries(properties))
                made.setAttribute(name, String(value));
        made.append(...children.flat(Infinity));
        return made;
}

/*
 * Makes the children of @parent look like @wanted and keeps the nodes that can stay, so that a
 * refresh every five seconds takes neither the focus nor a text selection away.
 */
export function update(parent, ...wanted) {
        const fresh = wanted.flat(Infinity).filter(Boolean)
                .map(node => typeof node === 'string' ? document.createTextNode(node) : node);
        sync_children(parent, fresh);
}

function sync_children(parent, fresh) {
        while (parent.childNodes.length > fresh.length)
                parent.lastChild.remove();
        fresh.forEach((node, i) => {
                const old = parent.childNodes[i];
                if (!old)
                        parent.append(node);
                else if (old.nodeName !== node.nodeName)
                        old.replaceWith(node);
                else
                        sync(old, node);
        });
}

function sync(old, node) {
        if (old.nodeType === Node.TEXT_NODE) {
                if (old.data !== node.data)
                        old.data = node.data;
                return;
        }
        for (const { name } of [...old.attributes])
                if (name !== 'style' && !node.hasAttribute(name))
                        old.removeAttribute(name);
        for (const { name, value } of [...node.attributes])
                if (name !== 'style' && old.getAttribute(name) !== value)
                        old.setAttribute(name, value);
        if (old.style.cssText !== node.style.cssText)
                old.style.cssText = node.style.cssText;
        sync_children(old, [...node.childNodes]);
}
